/**
 * The interface of controllers. They access the cluster through a client, like controllers outside of the API server.
 */
import type { Kind } from "../api/kind.ts";
import type { LegacyTokenClaims } from "../auth/service-account/claims.ts";
import type { Client } from "../client/client.ts";
import type { SharedInformers } from "../client/informer/shared-informers.ts";
import { defaultFeatures } from "../flags/gate-tables/default-features.ts";
import type { FeatureLookup } from "../flags/gates.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { QueueMetrics } from "../std/metrics/queue-metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import type { ControllerOptions } from "./controller-options.ts";
import type { SigningAuthorities } from "./signing-authorities.ts";

export interface ControllerDeps {
  /** Authenticated as the controller's own service account. */
  readonly client: Client;
  /**
   * May list and watch all resources, and nothing else. As in Kubernetes, informers are the controller manager's, so
   * that the accounts of controllers need no permission to list and watch.
   */
  readonly observer: Client;
  /** Informers of `observer` that the controllers of a process share. */
  readonly informers: SharedInformers;
  /** PEM of the CA that clients of the cluster trust; undefined if none is configured. */
  readonly clusterCa?: string | undefined;
  /** Undefined if no signing key is configured. */
  readonly signing?: SigningAuthorities | undefined;
  /** Signs a token without expiration for a secret; undefined if an external signer is used. */
  readonly signLegacyToken?: ((claims: LegacyTokenClaims) => Promise<string>) | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** The built-in kinds that are served. */
  readonly kinds: readonly Kind[];
  /** Settings of single controllers. */
  readonly options: ControllerOptions;
  /** The defaults of Kubernetes 1.33 when absent. */
  readonly features?: FeatureLookup | undefined;
  /** How many keys of the queue are synced at the same time; undefined: the controller's own default. */
  readonly workers?: number | undefined;
  /** Where controllers register metrics of their own; undefined: nowhere. */
  readonly registry?: MetricRegistry | undefined;
  /** Creates the metrics of a queue. */
  readonly queueMetrics?: ((name: string) => QueueMetrics) | undefined;
  /** Aborts when the controller must stop. */
  readonly signal: AbortSignal;
}

/** Whether a gate is on for the controllers. */
export function isFeatureEnabled(
  { features = defaultFeatures }: Pick<ControllerDeps, "features">,
  gate: string,
): boolean {
  return features.has(gate);
}

/** Runs until the signal aborts, then finishes syncs in progress and resolves. Rejects only for a fatal error. */
export type RunController = (deps: ControllerDeps) => Promise<void>;
