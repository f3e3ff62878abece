/** The traces of a program that exports them. */
import { type RandomSource, systemRandom } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import { SpanBatcher } from "./otlp/batcher.ts";
import { OtlpExporter } from "./otlp/exporter.ts";
import { type Attributes, type Span, type SpanOptions, Trace, type TraceOptions } from "./span.ts";

export interface TracingConfig {
  /** `localhost:4317`, the default of OTLP, when absent. */
  readonly endpoint?: string | undefined;
  /** Undefined or 0: only requests are sampled whose caller is. */
  readonly samplingRatePerMillion?: number | undefined;
}

export interface TracerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: RandomSource | undefined;
  /** Describes this program: `service.name` and others. */
  readonly resource: Attributes;
}

export const DEFAULT_ENDPOINT = "localhost:4317";

export class Tracer implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #export: NonNullable<TraceOptions["export"]>;
  readonly #exporter: OtlpExporter;
  readonly #batcher: SpanBatcher;

  constructor({ endpoint = DEFAULT_ENDPOINT, samplingRatePerMillion = 0 }: TracingConfig, deps: TracerDeps) {
    const { clock, log, random = systemRandom, resource } = deps;
    this.#clock = clock;
    this.#exporter = new OtlpExporter(endpoint, resource, clock);
    const send = this.#exporter.send.bind(this.#exporter);
    this.#batcher = new SpanBatcher({ clock, log, random, send });
    this.#export = { sink: this.#batcher, random, ratio: samplingRatePerMillion / 1_000_000 };
  }

  /** Starts the outermost span of a trace. */
  start(options: SpanOptions, more: Pick<TraceOptions, "remote" | "onSlow"> = {}): Span {
    return new Trace({ clock: this.#clock, export: this.#export, ...more }).start(options);
  }

  /** Exports what is queued, if the collector receives it in time. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#batcher[Symbol.asyncDispose]();
    this.#exporter[Symbol.dispose]();
  }
}
