/**
 * Records events of `events.k8s.io`, as Kubernetes' scheduler does. An event that repeats becomes a series: the first
 * repetition is written at once, the count of the others when the series ends.
 */
import type { ObjectReference } from "../../api/core/references/object-reference.ts";
import { eventsV1EventKind } from "../../api/events/event/kind.ts";
import type { Event } from "../../api/events/event/schema.ts";
import { StatusError } from "../../api/status.ts";
import { formatMicroTime } from "../../schema/value/time.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import type { Client } from "../client.ts";

export interface SeriesRecorderOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** `default-scheduler-HOST` */
  readonly instance: string;
}

export interface EventDetails {
  readonly regarding: ObjectReference;
  readonly related?: ObjectReference | undefined;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly action: string;
  readonly note: string;
  /** `default-scheduler`: the profile of the pod. */
  readonly controller: string;
}

export interface SeriesRecorder extends AsyncDisposable {
  /** Never fails and never waits: events are sent in the background. */
  record(event: EventDetails): void;
  /** Resolves when all recorded events are sent or dropped. */
  flush(): Promise<void>;
}

/** The maximum number of events to send. When the queue is full, new ones are dropped. */
const QUEUE_MAX = 1000;
const SENDERS = 4;
const ATTEMPTS_MAX = 12;
const RETRY_MS = 10_000;
/** A series ends after this time without a repetition; an event that does not repeat is forgotten. */
const SERIES_MS = 6 * 60_000;
const NOTE_CHARS_MAX = 1024;

interface Series {
  event: Event;
  count: number;
  lastAt: number;
}

export function createSeriesRecorder(options: SeriesRecorderOptions): SeriesRecorder {
  return new Recorder(options);
}

class Recorder implements SeriesRecorder {
  readonly #options: SeriesRecorderOptions;
  /** Bounded by the events of `SERIES_MS`, of which the queue lets through a limited number. */
  readonly #series = new Map<string, Series>();
  readonly #queue: (() => Promise<void>)[] = [];
  readonly #stop = new AbortController();
  readonly #senders = new Set<Promise<void>>();
  #dropped = 0;
  #timer: Timer | undefined;

  constructor(options: SeriesRecorderOptions) {
    this.#options = options;
  }

  record(details: EventDetails): void {
    if (this.#stop.signal.aborted) return;
    const { type, action, reason, controller, regarding, related } = details;
    const key = JSON.stringify([type, action, reason, controller, regarding, related]);
    const existing = this.#series.get(key);
    const now = this.#options.clock.now();
    if (existing !== undefined) {
      existing.count++;
      existing.lastAt = now;
      if (existing.count === 2) this.#enqueue(() => this.#writeSeries(existing));
      return;
    }
    const event = this.#newEvent(details);
    if (!this.#enqueue(() => this.#create(event))) return;
    this.#series.set(key, { event, count: 1, lastAt: now });
    this.#timer ??= this.#options.clock.timer(SERIES_MS, () => this.#endSeries());
  }

  async flush(): Promise<void> {
    while (this.#senders.size > 0) await Promise.all(this.#senders);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer?.cancel();
    this.#stop.abort(new DOMException("The event recorder is closed", "AbortError"));
    this.#queue.length = 0;
    await this.flush();
  }

  #enqueue(send: () => Promise<void>): boolean {
    if (this.#queue.length >= QUEUE_MAX) {
      if (this.#dropped++ === 0) this.#options.log.warn("Dropping events: the queue is full", { limit: QUEUE_MAX });
      return false;
    }
    this.#queue.push(send);
    if (this.#senders.size >= SENDERS) return true;
    const sender = this.#sendAll().finally(() => this.#senders.delete(sender));
    this.#senders.add(sender);
    return true;
  }

  async #sendAll(): Promise<void> {
    // Starts after the caller has continued.
    await Promise.resolve();
    for (let send = this.#queue.shift(); send !== undefined; send = this.#queue.shift()) {
      await this.#attempt(send);
    }
    if (this.#dropped > 0) this.#options.log.warn("Events were dropped", { count: this.#dropped });
    this.#dropped = 0;
  }

  async #attempt(send: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        return await send();
      } catch (error) {
        if (signal.aborted) return;
        if (attempt === ATTEMPTS_MAX || !isTransient(error)) {
          this.#options.log.warn("Failed to send event", { error: String(error) });
          return;
        }
        await this.#options.clock.sleep(RETRY_MS, signal).catch(() => {});
      }
    }
  }

  async #create(event: Event): Promise<void> {
    await this.#options.client.create(eventsV1EventKind, event, this.#stop.signal);
  }

  async #writeSeries({ event, count, lastAt }: Series): Promise<void> {
    const { client } = this.#options;
    const { signal } = this.#stop;
    const { name = "", namespace } = event.metadata ?? {};
    const series = { count, lastObservedTime: formatMicroTime(lastAt) };
    try {
      await client.patch(eventsV1EventKind, { name, namespace }, "strategic", { series }, { signal });
    } catch (error) {
      // The server deletes events after their time to live.
      if (!(error instanceof StatusError) || error.status.code !== 404) throw error;
      await client.create(eventsV1EventKind, { ...event, series }, signal);
    }
  }

  /** Writes the final counts of series that have ended. */
  #endSeries(): void {
    this.#timer = undefined;
    const now = this.#options.clock.now();
    for (const [key, series] of this.#series) {
      if (now - series.lastAt < SERIES_MS) continue;
      this.#series.delete(key);
      if (series.count > 2) this.#enqueue(() => this.#writeSeries(series));
    }
    if (this.#series.size > 0) this.#timer = this.#options.clock.timer(SERIES_MS, () => this.#endSeries());
  }

  #newEvent({ regarding, related, type, reason, action, note, controller }: EventDetails): Event {
    const { clock, random, instance } = this.#options;
    const suffix = Buffer.from(random.bytes(8)).toString("hex");
    return {
      // The namespace of events of cluster-scoped objects is `default`.
      metadata: { name: `${regarding.name}.${suffix}`, namespace: regarding.namespace || "default" },
      eventTime: formatMicroTime(clock.now()),
      reportingController: controller,
      reportingInstance: instance,
      action,
      reason,
      regarding,
      related,
      note: truncate(note),
      type,
    };
  }
}

function truncate(note: string): string {
  const suffix = " ...";
  return note.length <= NOTE_CHARS_MAX ? note : `${note.slice(0, NOTE_CHARS_MAX - suffix.length)}${suffix}`;
}

/** Whether a retry can succeed: without a response, or with a status for that. */
function isTransient(error: unknown): boolean {
  return !(error instanceof StatusError) || error.status.code === 429 || error.status.code >= 500;
}
