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
  readonly longRunning: WatchTermination;
  readonly turnAway: RetryAfterOnShutdown;
  /** `/readyz` fails from now on. */
  readonly notReady: () => void;
  /** How long requests in flight may go on. */
  readonly requestTimeoutMs: number;
}

/** Once clients have been told to go, how long their connections may take to end. */
const FAREWELL_MS = 2000;

/** Resolves when no connection is left. */
export async function shutDown(config: ShutdownConfig, parts: ShutdownParts): Promise<void> {
  const { clock, log, listener, longRunning, turnAway, requestTimeoutMs } = parts;
  parts.notReady();
  if (config.delayMs > 0) {
    log.info("Shutting down: not ready, and serving on", { milliseconds: config.delayMs });
    await clock.sleep(config.delayMs);
  }
  const watchesEnd = longRunning.terminate(config.watchGraceMs);
  const patienceMs = Math.max(requestTimeoutMs, config.watchGraceMs);
  if (!config.sendRetryAfter) {
    log.info("Shutting down: no new requests", { milliseconds: patienceMs });
    await Promise.all([watchesEnd, listener.close(patienceMs)]);
    return;
  }
  log.info("Shutting down: new requests are sent elsewhere", { milliseconds: patienceMs });
  const over = new AbortController();
  const late = clock.sleep(patienceMs, over.signal).catch(() => {});
  await Promise.race([Promise.all([watchesEnd, turnAway.begin()]), late]);
  over.abort();
  await listener.close(FAREWELL_MS);
}
