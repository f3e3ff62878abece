/** The phases of a graceful shutdown, as in Kubernetes: load balancers and clients get time to use other servers. */
import type { Listener } from "../../http/server/listener.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { RetryAfterOnShutdown } from "./filters/retry-after.ts";
import type { WatchTermination } from "./filters/watch-termination.ts";

export interface ShutdownConfig {
  /** How long the server serves requests while not ready, after the signal. */
  readonly delayMs: number;
  /** Keep listening while requests in flight end, and respond 429 with Retry-After to new ones. */
  readonly sendRetryAfter: boolean;
  /** The period over which watches are ended; 0: all at once. */
  readonly watchGraceMs: number;
}

export interface ShutdownParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly listener: Listener;
  readonly watchTermination: WatchTermination;
  readonly retryAfter: RetryAfterOnShutdown;
  /** Makes `/readyz` fail. */
  readonly notReady: () => void;
  /** How long requests in flight may take to complete. */
  readonly requestTimeoutMs: number;
  /**
   * Waits for other threads that listen on the port, after the requests of this one have ended: the kernel assigns new
   * connections to each thread that listens.
   */
  readonly othersDrained?: (() => Promise<void>) | undefined;
}

/** How long connections may take to close after the drain. */
const CONNECTION_CLOSE_MS = 2000;

/** Resolves when no connection is left. */
export async function shutDown(config: ShutdownConfig, parts: ShutdownParts): Promise<void> {
  const { clock, log, listener, watchTermination, retryAfter, requestTimeoutMs } = parts;
  parts.notReady();
  if (config.delayMs > 0) {
    log.info("Shutting down: not ready, still serving", { milliseconds: config.delayMs });
    await clock.sleep(config.delayMs);
  }
  const watchesTerminated = watchTermination.terminate(config.watchGraceMs);
  const drainMs = Math.max(requestTimeoutMs, config.watchGraceMs);
  if (!config.sendRetryAfter) {
    log.info("Shutting down: closing the listener", { milliseconds: drainMs });
    await Promise.all([watchesTerminated, listener.close(drainMs)]);
    return;
  }
  log.info("Shutting down: rejecting new requests with 429", { milliseconds: drainMs });
  const drained = new AbortController();
  const timeout = clock.sleep(drainMs, drained.signal).catch(() => {});
  await Promise.race([Promise.all([watchesTerminated, retryAfter.begin()]), timeout]);
  drained.abort();
  await parts.othersDrained?.();
  await listener.close(CONNECTION_CLOSE_MS);
}
