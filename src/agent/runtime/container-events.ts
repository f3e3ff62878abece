/**
 * Watches the runtime's container events, if it supports them. An event only triggers a listing, which also detects
 * changes without an event.
 */

import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { WatchContainerEvents } from "./cri-client.ts";
import { RuntimeError } from "./runtime.ts";

/** Records the state of the stream. */
export interface ContainerEventsObserver {
  /** A stream is requested. */
  onConnected(): void;
  onError(): void;
  /** `ageSeconds` since the runtime created the event. */
  onEvent(ageSeconds: number): void;
}

export interface ContainerEventsOptions {
  readonly events: WatchContainerEvents;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly onEvent: () => void;
  /** Whether events announce all changes: the stream is open for some seconds, so that the runtime has accepted it. */
  readonly onStream: (isOpen: boolean) => void;
  readonly metrics?: ContainerEventsObserver | undefined;
  readonly signal: AbortSignal;
}

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 30_000;
/** A runtime that does not support events ends the stream at once. */
const ACCEPTED_MS = 5_000;
/** A runtime without events may be replaced by one that supports them. */
const UNSUPPORTED_RETRY_MS = 300_000;

/** Runs until the signal aborts. Never rejects. */
export async function watchContainerEvents(options: ContainerEventsOptions): Promise<void> {
  const { events, clock, random, log, onEvent, onStream, metrics, signal } = options;
  const backoff = new Backoff({ initialMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS }, random);
  while (!signal.aborted) {
    let delayMs: number | undefined;
    const accepted = clock.timer(ACCEPTED_MS, () => onStream(true));
    try {
      metrics?.onConnected();
      await events(({ createdAt }) => {
        backoff.reset();
        if (createdAt !== undefined) metrics?.onEvent(Math.max(0, clock.now() / 1000 - Number(createdAt) / 1e9));
        onEvent();
      }, signal);
    } catch (error) {
      if (signal.aborted) return;
      metrics?.onError();
      if (error instanceof RuntimeError && error.code === "UNIMPLEMENTED") delayMs = UNSUPPORTED_RETRY_MS;
      log.v(2)?.info("Container event stream ended", { error: String(error) });
    } finally {
      accepted.cancel();
      onStream(false);
    }
    await clock.sleep(delayMs ?? backoff.next(), signal).catch(() => undefined);
    // Events may have been lost in between.
    if (delayMs === undefined && !signal.aborted) onEvent();
  }
}
