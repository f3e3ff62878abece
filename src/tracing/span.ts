/**
 * Spans: timed parts of a request. One span serves two readers, as in Kubernetes: the collector of OpenTelemetry, if
 * tracing is configured and the request is sampled, and the log, if the request is slow. The current span follows
 * asynchronous calls by itself, so that the layers below pass no parameter on.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { MaybePromise } from "../std/async/maybe-promise.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Clock } from "../std/time/clock.ts";
import { formatTraceContext, type SpanContext } from "./trace-context.ts";

export type AttributeValue = string | number | boolean | readonly string[];
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface SpanEvent {
  readonly name: string;
  /** By the monotonic clock, in milliseconds. */
  readonly at: number;
  readonly attributes: Attributes;
}

export type SpanKind = "internal" | "server" | "client";

/** The names of Kubernetes' instrumentation libraries. */
export type Scope =
  | "k8s.io/component-base/tracing"
  | "k8s.op/apiserver/pkg/endpoints/filterlatency"
  | "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
  | "go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
  | "k8s.io/kubernetes/pkg/kubelet";

export const HTTP_SCOPE: Scope = "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp";

export const GRPC_SCOPE: Scope = "go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc";
export const AGENT_SCOPE: Scope = "k8s.io/kubernetes/pkg/kubelet";

export interface SpanOptions {
  readonly name: string;
  readonly kind?: SpanKind | undefined;
  readonly scope?: Scope | undefined;
  /** A function is called only if the span is exported or logged. */
  readonly attributes?: Attributes | (() => Attributes) | undefined;
}

/** Receives the spans of sampled traces when they end. */
export interface SpanSink {
  add(span: Span): void;
}

export interface TraceOptions {
  readonly clock: Clock;
  /** Undefined: nothing is exported. */
  readonly export?: { readonly sink: SpanSink; readonly random: RandomSource; readonly ratio: number } | undefined;
  /** The context in the headers of the request. */
  readonly remote?: SpanContext | undefined;
  /** Called with the outermost span that has a threshold, when it ends. */
  readonly onSlow?: ((span: Span) => void) | undefined;
}

/** Bounds the memory of a request with many parts, such as the deletion of a collection. */
const SPANS_MAX = 1000;
/** Bounds the items of one span: OpenTelemetry's default. */
const ITEMS_MAX = 128;
/** The time after which Kubernetes logs a span with its steps. */
export const SLOW_MS = 500;

const NO_ATTRIBUTES: Attributes = {};
const NO_HEADERS: Readonly<Record<string, string>> = {};

/** Holds the current span. A loop that handles one request after the other replaces it. */
export interface SpanHolder {
  readonly span: Span | undefined;
}

const spans = new AsyncLocalStorage<SpanHolder>();

/** The span of the calling function; undefined when its request is not traced, or has ended. */
export function currentSpan(): Span | undefined {
  const span = spans.getStore()?.span;
  return span === undefined || span.trace.hasEnded ? undefined : span;
}

/** The layers whose time the audit event of a slow request has. A response is transformed or serialized. */
export type Layer =
  | "store"
  | "decode"
  | "mutatingWebhooks"
  | "validatingWebhooks"
  | "transform"
  | "serialize"
  | "write";

/** Adds to the time that the current request has spent in a layer. */
export function addLatency(layer: Layer, milliseconds: number): void {
  currentSpan()?.trace.addLatency(layer, milliseconds);
}

/** Runs `work`, and adds its time to that of a layer if the time of layers is measured. */
export function inLayer<T>(layer: Layer, work: () => T): T {
  const trace = currentSpan()?.trace;
  if (trace?.measuresLayers !== true) return work();
  const began = trace.clock.monotonic();
  try {
    return work();
  } finally {
    trace.addLatency(layer, trace.clock.monotonic() - began);
  }
}

/** Runs a loop whose current span is that of the holder. */
export function runWithSpans<T>(holder: SpanHolder, work: () => T): T {
  return spans.run(holder, work);
}

/** Adds a step to the current span. */
export function addEvent(name: string, attributes?: Attributes): void {
  currentSpan()?.addEvent(name, attributes);
}

/** Runs `work` in a new child of the current span; without one just runs it. */
export function inSpan<T>(
  name: string,
  attributes: Attributes | (() => Attributes),
  work: () => MaybePromise<T>,
): MaybePromise<T> {
  const span = currentSpan()?.child({ name, attributes }, SLOW_MS);
  return span === undefined ? work() : span.run(work);
}

/** The same for spans that only a collector receives. */
export function inExportedSpan<T>(options: SpanOptions, work: () => MaybePromise<T>): MaybePromise<T> {
  const parent = currentSpan();
  const span = parent?.trace.exports === true ? parent.child(options) : undefined;
  return span === undefined ? work() : span.run(work);
}

/** Makes a request to another program, with headers that connect it to the current span. */
export async function inClientSpan<R extends { readonly status: number }>(
  method: string,
  url: string,
  request: (headers: Readonly<Record<string, string>>) => Promise<R>,
): Promise<R> {
  const attributes = { "http.method": method, "http.url": url };
  const options: SpanOptions = { name: `HTTP ${method}`, kind: "client", scope: HTTP_SCOPE, attributes };
  return await inExportedSpan(options, async () => {
    const response = await request(traceHeaders());
    const span = currentSpan();
    if (span?.kind === "client") span.setHttpStatus(response.status);
    return response;
  });
}

/** Headers that connect a request to another program with the current span. */
export function traceHeaders(): Readonly<Record<string, string>> {
  return currentSpan()?.headers() ?? NO_HEADERS;
}

/** What the spans of one request share. */
export class Trace {
  readonly clock: Clock;
  readonly remote: SpanContext | undefined;
  readonly onSlow: TraceOptions["onSlow"];
  /** Milliseconds since 1970 at the monotonic time 0. */
  readonly epoch: number;
  readonly #export: TraceOptions["export"];
  /** Ended before it was decided whether the trace is sampled. */
  #undecided: Span[] = [];
  #sampled: boolean | undefined;
  #traceId: string | undefined;
  /** The remote span is the parent, rather than a link. */
  #continuesRemote = false;
  #spans = 0;
  #latencies: Partial<Record<Layer, number>> | undefined;
  /** Set when the request is recorded. */
  measuresLayers = false;
  hasEnded = false;

  constructor(options: TraceOptions) {
    this.clock = options.clock;
    this.remote = options.remote;
    this.onSlow = options.onSlow;
    this.#export = options.export;
    this.epoch = options.clock.now() - options.clock.monotonic();
  }

  addLatency(layer: Layer, milliseconds: number): void {
    if (!this.measuresLayers) return;
    this.#latencies ??= {};
    const before = this.#latencies[layer] ?? 0;
    // Validating webhooks are called in parallel.
    this.#latencies[layer] = layer === "validatingWebhooks" ? Math.max(before, milliseconds) : before + milliseconds;
  }

  /** In milliseconds. */
  latencyOf(layer: Layer): number {
    return this.#latencies?.[layer] ?? 0;
  }

  /** Starts the outermost span. */
  start(options: SpanOptions, thresholdMs?: number): Span {
    return new Span(this, undefined, options, thresholdMs);
  }

  /** Undefined beyond the maximum. */
  admit(): boolean {
    return this.#spans++ < SPANS_MAX;
  }

  get exports(): boolean {
    return this.#export !== undefined;
  }

  /**
   * Decides once whether the trace is sampled. A trusted caller's decision is followed, and its span is the parent;
   * otherwise the trace is new, and sampled by the configured ratio.
   */
  decide(trustsRemote: boolean): void {
    const { remote } = this;
    if (this.#sampled !== undefined || this.#export === undefined) return;
    this.#continuesRemote = trustsRemote && remote !== undefined;
    if (this.#continuesRemote) this.#traceId = remote!.traceId;
    this.#sampled = this.#continuesRemote ? remote!.sampled : isSampled(this.traceId, this.#export.ratio);
    if (this.#sampled) for (const span of this.#undecided) this.#export.sink.add(span);
    this.#undecided = [];
  }

  get traceId(): string {
    this.#traceId ??= this.#randomHex(16);
    return this.#traceId;
  }

  get sampled(): boolean {
    return this.#sampled === true;
  }

  get remoteParent(): SpanContext | undefined {
    return this.#continuesRemote ? this.remote : undefined;
  }

  get link(): SpanContext | undefined {
    return this.#continuesRemote ? undefined : this.remote;
  }

  newSpanId(): string {
    return this.#randomHex(8);
  }

  /** Called for each span that ends; the outermost one ends the trace. */
  onSpanEnd(span: Span): void {
    if (this.#export !== undefined) {
      if (this.#sampled === true) this.#export.sink.add(span);
      else if (this.#sampled === undefined) this.#undecided.push(span);
    }
    if (span.parent !== undefined) return;
    this.decide(false);
    this.hasEnded = true;
  }

  #randomHex(bytes: number): string {
    // All zeros are invalid, and as improbable as a collision.
    return Buffer.from(this.#export?.random.bytes(bytes) ?? []).toString("hex");
  }
}

/** OpenTelemetry's sampler by the trace's ID, so that all programs decide alike. */
function isSampled(traceId: string, ratio: number): boolean {
  if (ratio >= 1) return true;
  if (ratio <= 0) return false;
  const bound = BigInt(Math.floor(ratio * 2 ** 63));
  return BigInt(`0x${traceId.slice(16)}`) >> 1n < bound;
}

export class Span implements SpanHolder {
  readonly span = this;
  readonly trace: Trace;
  readonly parent: Span | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  readonly scope: Scope;
  /** By the monotonic clock, in milliseconds. */
  readonly startedAt: number;
  /** A span with a threshold belongs to the log of slow requests: it is logged with its steps if it takes longer. */
  readonly thresholdMs: number | undefined;
  #attributes: Attributes | (() => Attributes);
  /** Steps and nested spans with a threshold, in the order of their start. */
  items: readonly (SpanEvent | Span)[] = [];
  endedAt: number | undefined;
  /** Undefined: the work succeeded. */
  error: string | undefined;
  #id: string | undefined;

  constructor(trace: Trace, parent: Span | undefined, options: SpanOptions, thresholdMs: number | undefined) {
    this.trace = trace;
    this.parent = parent;
    this.name = options.name;
    this.kind = options.kind ?? "internal";
    this.scope = options.scope ?? "k8s.io/component-base/tracing";
    this.#attributes = options.attributes ?? NO_ATTRIBUTES;
    this.thresholdMs = thresholdMs;
    this.startedAt = trace.clock.monotonic();
  }

  get id(): string {
    this.#id ??= this.trace.newSpanId();
    return this.#id;
  }

  get attributes(): Attributes {
    if (typeof this.#attributes === "function") this.#attributes = this.#attributes();
    return this.#attributes;
  }

  /** The nearest span, from this one outwards, that is a part of the log of slow requests. */
  get logged(): Span | undefined {
    return this.thresholdMs === undefined ? this.parent?.logged : this;
  }

  get events(): readonly SpanEvent[] {
    return this.items.filter((item): item is SpanEvent => !(item instanceof Span));
  }

  /** Starts a part of this span; undefined when the request has too many. */
  child(options: SpanOptions, thresholdMs?: number): Span | undefined {
    if (!this.trace.admit()) return undefined;
    const span = new Span(this.trace, this, options, thresholdMs);
    const { logged } = this;
    if (thresholdMs !== undefined && logged !== undefined) logged.#add(span);
    return span;
  }

  addEvent(name: string, attributes: Attributes = NO_ATTRIBUTES): void {
    this.#add({ name, at: this.trace.clock.monotonic(), attributes });
  }

  #add(item: SpanEvent | Span): void {
    if (this.items.length === 0) this.items = [item];
    else if (this.items.length < ITEMS_MAX) (this.items as (SpanEvent | Span)[]).push(item);
  }

  set(attributes: Attributes): void {
    this.#attributes = { ...this.attributes, ...attributes };
  }

  /** Client errors are failures of a client's span, and not of the server's, as OpenTelemetry defines. */
  setHttpStatus(status: number): void {
    this.set({ "http.status_code": status });
    if (status >= (this.kind === "client" ? 400 : 500)) this.error ??= "";
  }

  /** Runs `work` with this as the current span, and ends it. */
  run<T>(work: () => MaybePromise<T>): MaybePromise<T> {
    let result: MaybePromise<T>;
    try {
      result = spans.run(this, work);
    } catch (error) {
      this.fail(error);
      throw error;
    }
    if (!(result instanceof Promise)) {
      this.end();
      return result;
    }
    return result.then(
      (value) => {
        this.end();
        return value;
      },
      (error: unknown) => {
        this.fail(error);
        throw error;
      },
    );
  }

  /** Runs `work` with this as the current span. */
  enter<T>(work: () => T): T {
    return spans.run(this, work);
  }

  /** Ends the span, whose work failed. */
  fail(error: unknown): void {
    this.error ??= error instanceof Error ? error.message : String(error);
    this.end();
  }

  end(): void {
    if (this.endedAt !== undefined) return;
    this.endedAt = this.trace.clock.monotonic();
    if (this.thresholdMs !== undefined && this.parent?.logged === undefined) this.trace.onSlow?.(this);
    this.trace.onSpanEnd(this);
  }

  /** Headers that connect a request to another program with this span. */
  headers(): Readonly<Record<string, string>> {
    const { trace } = this;
    const { remote } = trace;
    // Without a collector the context of the client is passed on.
    if (!trace.exports) return remote === undefined ? NO_HEADERS : formatTraceContext(remote);
    return formatTraceContext({
      traceId: trace.traceId,
      spanId: this.id,
      sampled: trace.sampled,
      traceState: trace.remoteParent?.traceState ?? "",
      baggage: remote?.baggage ?? "",
    });
  }
}
