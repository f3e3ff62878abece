/** How the server stops: in Kubernetes' phases, so that load balancers and clients have time to go elsewhere. */
import type { Listener } from "../../http/server/listener.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { RetryAfterOnShutdown } from "../filters/retry-after.ts";
import type { WatchTermination } from "../filters/watch-termination.ts";

export interface ShutdownConfig {
  /** How long the server goes on serving, not ready, after it was told to stop. */
  readonly delayMs: number;
  /** Go on listening while requests in flight end, and tell others to come again later. */
  readonly sendRetryAfter: boolean;
  /** Over how long watches are ended; 0: all at once. */
  readonly watchGraceMs: number;
}

export interface ShutdownParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly listener: Listener;
  readonly watchTermination: WatchTermination;
  readonly retryAfter: RetryAfterOnShutdown;
  /** `/readyz` fails from now on. */
  readonly notReady: () => void;
  /** How long requests in flight may go on. */
  readonly requestTimeoutMs: number;
}

/** Once clients have been told to go, how long their connections may take to end. */
const CONNECTION_CLOSE_MS = 2000;

/** Resolves when no connection is left. */
export async function shutDown(config: ShutdownConfig, parts: ShutdownParts): Promise<void> {
  const { clock, log, listener, watchTermination: longRunning, retryAfter: turnAway, requestTimeoutMs } = parts;
  parts.notReady();
  if (config.delayMs > 0) {
    log.info("Shutting down: not ready, and serving on", { milliseconds: config.delayMs });
    await clock.sleep(config.delayMs);
  }
  const watchesTerminated = longRunning.terminate(config.watchGraceMs);
  const drainMs = Math.max(requestTimeoutMs, config.watchGraceMs);
  if (!config.sendRetryAfter) {
    log.info("Shutting down: no new requests", { milliseconds: drainMs });
    await Promise.all([watchesTerminated, listener.close(drainMs)]);
    return;
  }
  log.info("Shutting down: new requests are sent elsewhere", { milliseconds: drainMs });
  const over = new AbortController();
  const timeout = clock.sleep(drainMs, over.signal).catch(() => {});
  await Promise.race([Promise.all([watchesTerminated, turnAway.begin()]), timeout]);
  over.abort();
  await listener.close(CONNECTION_CLOSE_MS);
}
