/**
 * Hears of containers from the runtime itself, where it tells. What is told is only a reason to look: listings see what
 * was never told.
 */

import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { WatchContainerEvents } from "./cri-client.ts";
import { RuntimeError } from "./runtime.ts";

export interface ContainerEventsOptions {
  readonly events: WatchContainerEvents;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly onEvent: () => void;
  readonly signal: AbortSignal;
}

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 30_000;
/** A runtime that tells nothing may be replaced by one that does. */
const UNSUPPORTED_RETRY_MS = 300_000;

/** Until the signal aborts. Never rejects. */
export async function watchContainerEvents(options: ContainerEventsOptions): Promise<void> {
  const { events, clock, random, log, onEvent, signal } = options;
  const backoff = new Backoff({ initialMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS }, random);
  while (!signal.aborted) {
    let delayMs: number | undefined;
    try {
      await events(() => {
        backoff.reset();
        onEvent();
      }, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof RuntimeError && error.code === "UNIMPLEMENTED") delayMs = UNSUPPORTED_RETRY_MS;
      log.v(2)?.info("The container runtime tells nothing of its containers", { error: String(error) });
    }
    await clock.sleep(delayMs ?? backoff.next(), signal).catch(() => undefined);
    // Whatever was missed meanwhile.
    if (delayMs === undefined && !signal.aborted) onEvent();
  }
}
