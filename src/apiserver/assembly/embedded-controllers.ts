/** Runs controllers in the process of the API server, for clusters without a controller manager. */
import type { Kind } from "../../api/kind.ts";
import type { LegacyTokenClaims } from "../../auth/service-account/claims.ts";
import type { UserInfo } from "../../auth/user.ts";
import { cborUseOf, createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import type { ControllerOptions } from "../../controllers/controller-options.ts";
import type { SigningAuthorities } from "../../controllers/signing-authorities.ts";
import type { FeatureLookup } from "../../flags/gates.ts";
import type { Handler } from "../../http/message.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { QueueMetrics } from "../../std/metrics/queue-metrics.ts";
import type { Clock } from "../../std/time/clock.ts";

export interface EmbeddedControllerDeps {
  readonly handler: Handler;
  readonly loopbackToken: (user: UserInfo) => string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** PEM of the CA that clients must trust. */
  readonly clusterCa: string | undefined;
  /** Undefined when the cluster signs no certificates. */
  readonly signing: SigningAuthorities | undefined;
  /** Signs tokens without expiration; undefined with an external signer. */
  readonly signLegacyToken: ((claims: LegacyTokenClaims) => Promise<string>) | undefined;
  /** The built-in kinds that are served. */
  readonly kinds: readonly Kind[];
  readonly registry: MetricRegistry;
  readonly queueMetrics: (name: string) => QueueMetrics;
  readonly options: Partial<ControllerOptions>;
  readonly features: FeatureLookup;
}

/** Throws for an unknown controller name. Disposing stops all controllers. */
export async function runEmbeddedControllers(
  names: readonly string[],
  deps: EmbeddedControllerDeps,
): Promise<AsyncDisposable> {
  if (names.length === 0) return { [Symbol.asyncDispose]: async () => {} };
  const { startControllers } = await import("../../controllers/controller-manager.ts");
  const {
    handler,
    loopbackToken,
    clock,
    random,
    log,
    clusterCa,
    signing,
    signLegacyToken,
    kinds,
    queueMetrics,
    registry,
    options,
    features,
  } = deps;
  const clientFor = (user: UserInfo): Client => {
    const headers = { authorization: `Bearer ${loopbackToken(user)}` };
    const streamsLists = features.has("WatchListClient");
    const cbor = cborUseOf(features.has("ClientsAllowCBOR"), features.has("ClientsPreferCBOR"));
    return createClient({ transport: handler, headers, userAgent: user.name, streamsLists, cbor });
  };
  const running = startControllers(names, {
    clientFor,
    clusterCa,
    signing,
    signLegacyToken,
    clock,
    random,
    log: log.child("controllers"),
    kinds,
    queueMetrics,
    registry,
    options,
    features,
  });
  running.ended.catch((error: unknown) => log.error("An embedded controller stopped", error));
  return running;
}
