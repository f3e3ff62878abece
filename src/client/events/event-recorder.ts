import { eventKind } from "../../api/core/event/kind.ts";
import type { Event } from "../../api/core/event/schema.ts";
import type { ObjectReference } from "../../api/core/references/object-reference.ts";
import { StatusError } from "../../api/status.ts";
import { formatInstant } from "../../schema/value/time.ts";
import { type RandomSource, randomSuffix } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { TokenBucket } from "../../std/time/token-bucket.ts";
import type { Client } from "../client.ts";
import { EventCorrelator, type EventSeries, type Occurrence } from "./event-correlator.ts";

export interface EventRecorderOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** `source.component`: `svclet`, `default-scheduler`. */
  readonly component: string;
  /** `source.host`: the node's name. */
  readonly host?: string | undefined;
  /** Events a second, on average; 50 when absent, no limit when 0. */
  readonly qps?: number | undefined;
  /** Events at once after a pause; 100 when absent. */
  readonly burst?: number | undefined;
}

export interface RecordOptions {
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Of the event, which is created once, also when a later process records it again; default: a new one. */
  readonly name?: string | undefined;
}

export interface EventRecorder extends AsyncDisposable {
  /** Never fails and never waits: events are sent in the background. */
  record(
    about: ObjectReference,
    type: "Normal" | "Warning",
    reason: string,
    message: string,
    options?: RecordOptions,
  ): void;
  /** Resolves when all recorded events are sent or dropped. */
  flush(): Promise<void>;
}

/**
 * The maximum number of occurrences to send. When the queue is full, new ones are dropped.
 */
const QUEUE_MAX = 1000;
const DEFAULT_QPS = 50;
const DEFAULT_BURST = 100;
/** The number of attempts to send an event, and their interval. */
const ATTEMPTS_MAX = 12;
const RETRY_MS = 10_000;
/** The maximum message, in UTF-8 bytes: the output of a probe with some text. */
const MESSAGE_BYTES_MAX = 12 * 1024;

/** Equal events increment the count of the first one. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new Recorder(options);
}

class Recorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #correlator: EventCorrelator;
  readonly #bucket: TokenBucket | undefined;
  readonly #queue: Occurrence[] = [];
  readonly #stop = new AbortController();
  #sending: Promise<void> | undefined;
  #dropped = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    const { clock, qps = DEFAULT_QPS, burst = DEFAULT_BURST } = options;
    this.#correlator = new EventCorrelator(clock, (object) => this.#newName(object));
    this.#bucket = qps === 0 ? undefined : new TokenBucket(clock, qps, Math.max(burst, 1));
  }

  record(
    about: ObjectReference,
    type: "Normal" | "Warning",
    reason: string,
    message: string,
    options: RecordOptions = {},
  ): void {
    if (this.#stop.signal.aborted) return;
    if (this.#queue.length >= QUEUE_MAX) {
      if (this.#dropped++ === 0) this.#options.log.warn("Dropping events: the queue is full", { limit: QUEUE_MAX });
      return;
    }
    const at = this.#options.clock.now();
    this.#queue.push({ object: about, type, reason, message: truncateMessage(message), ...options, at });
    this.#sending ??= this.#sendAll();
  }

  async flush(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new DOMException("The event recorder is closed", "AbortError"));
    this.#queue.length = 0;
    await this.flush();
  }

  #newName({ name = "" }: ObjectReference): string {
    const { clock, random } = this.#options;
    return `${name}.${clock.now().toString(16)}${randomSuffix(random)}`;
  }

  async #sendAll(): Promise<void> {
    // Starts after the caller has continued.
    await Promise.resolve();
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      try {
        await this.#send(next);
      } catch (error) {
        if (this.#stop.signal.aborted) break;
        const { reason, object: about } = next;
        const why = error instanceof Error ? error.message : String(error);
        this.#options.log.warn("Failed to send event", { reason, kind: about.kind, name: about.name, error: why });
      }
    }
    if (this.#dropped > 0) this.#options.log.warn("Events were dropped", { count: this.#dropped });
    this.#dropped = 0;
    // In the same turn as the last check of the queue, so that no occurrence stays in it.
    this.#sending = undefined;
  }

  async #send(occurrence: Occurrence): Promise<void> {
    const series = this.#correlator.correlate(occurrence);
    if (series === undefined) return;
    const { clock } = this.#options;
    const { signal } = this.#stop;
    for (let attempt = 1; ; attempt++) {
      while (this.#bucket !== undefined && !this.#bucket.take()) await clock.sleep(this.#bucket.waitMs, signal);
      try {
        return await this.#write(occurrence, series);
      } catch (error) {
        if (signal.aborted || attempt === ATTEMPTS_MAX || !isTransient(error)) throw error;
        await clock.sleep(RETRY_MS, signal);
      }
    }
  }

  async #write(occurrence: Occurrence, series: EventSeries): Promise<void> {
    const { client } = this.#options;
    const { signal } = this.#stop;
    const namespace = namespaceOf(occurrence.object);
    if (series.count > 1) {
      const { count, message, lastAt } = series;
      const patch = { count, message, lastTimestamp: formatTime(lastAt) };
      try {
        await client.patch(eventKind, { namespace, name: series.name }, "strategic", patch, { signal });
        return;
      } catch (error) {
        // The server deletes events after their TTL: the count continues in a new event.
        if (!(error instanceof StatusError) || error.status.code !== 404) throw error;
        series.name = this.#newName(occurrence.object);
      }
    }
    try {
      await client.create(eventKind, this.#event(occurrence, series, namespace), signal);
    } catch (error) {
      const exists = error instanceof StatusError && error.status.reason === "AlreadyExists";
      if (occurrence.name === undefined || !exists) throw error;
    }
  }

  #event({ object: about, type, reason, annotations }: Occurrence, series: EventSeries, namespace: string): Event {
    const { component, host } = this.#options;
    return {
      metadata: { name: series.name, namespace, ...(annotations === undefined ? {} : { annotations }) },
      involvedObject: about,
      reason,
      message: series.message,
      source: { component, ...(host === undefined ? {} : { host }) },
      firstTimestamp: formatTime(series.firstAt),
      lastTimestamp: formatTime(series.lastAt),
      count: series.count,
      type,
      reportingComponent: component,
      reportingInstance: host ?? "",
    };
  }
}

function formatTime(milliseconds: number): string {
  return formatInstant({ seconds: Math.floor(milliseconds / 1000), nanos: 0 }, false);
}

/** Events of cluster-scoped objects are in `default`. */
function namespaceOf(about: ObjectReference): string {
  return about.namespace === undefined || about.namespace === "" ? "default" : about.namespace;
}

/** Whether a retry can succeed: without a response, or with a status for that. */
function isTransient(error: unknown): boolean {
  return !(error instanceof StatusError) || error.status.code === 429 || error.status.code >= 500;
}

function truncateMessage(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= MESSAGE_BYTES_MAX) return message;
  // A cut inside a character leaves a replacement character of three bytes.
  return `${bytes
    .subarray(0, MESSAGE_BYTES_MAX - 6)
    .toString("utf8")
    .replace(/\uFFFD+$/, "")}...`;
}
