/** A control loop that may run inside the API server: it sees the cluster through a client like anybody else. */
import type { Kind } from "../api/kind.ts";
import type { LegacyTokenClaims } from "../auth/service-account/claims.ts";
import type { Client } from "../client/client.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { QueueMetrics } from "../std/metrics/queue-metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import type { SigningAuthorities } from "./signing-authorities.ts";

export interface ControllerDeps {
  /** Has the rights of the controller's own account. */
  readonly client: Client;
  /**
   * May list and watch everything, and do nothing: Kubernetes' controllers see the cluster through watches that they
   * share, made by their manager, so that their own accounts need no right to read.
   */
  readonly observer: Client;
  /** PEM of the authority that clients of the cluster trust; undefined where nobody said. */
  readonly clusterCa?: string | undefined;
  /** Undefined where nobody's key signs certificates. */
  readonly signing?: SigningAuthorities | undefined;
  /** Signs a token without an end for a secret; undefined where somebody else signs tokens. */
  readonly signLegacy?: ((claims: LegacyTokenClaims) => Promise<string>) | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** The built-in kinds that are served. */
  readonly kinds: readonly Kind[];
  /** What is recorded of its queue. */
  readonly queue?: QueueMetrics | undefined;
  /** Aborts when the controller has to stop. */
  readonly signal: AbortSignal;
}

/** Runs until the signal aborts and then resolves, its work put down; rejects only for an error it cannot live with. */
export type RunController = (deps: ControllerDeps) => Promise<void>;
