/** Where the time of a slow request went: Kubernetes' annotations `apiserver.latency.k8s.io/…`. */
import { formatGoDuration } from "../std/time/go-duration.ts";
import type { Layer, Trace } from "../tracing/span.ts";

/** Filters that report their time. */
export type MeasuredFilter = "authentication" | "authorization" | "queueWait";

export class RequestLatencies implements Record<MeasuredFilter, number> {
  authentication = 0;
  authorization = 0;
  queueWait = 0;
  #trace: Trace | undefined;

  /** Measures the layers below the filters. */
  measure(trace: Trace): void {
    trace.measuresLayers = true;
    this.#trace = trace;
  }

  addLatency(layer: Layer, milliseconds: number): void {
    this.#trace?.addLatency(layer, milliseconds);
  }

  /** Layers without work have none; without any there is no `total`, from the arrival to the end of the response. */
  annotations(total: number): readonly (readonly [key: string, value: string])[] {
    const of = (layer: Layer): number => this.#trace?.latencyOf(layer) ?? 0;
    const layers: Readonly<Record<string, number>> = {
      "apf-queue-wait": this.queueWait,
      authentication: this.authentication,
      authorization: this.authorization,
      "decode-response-object": of("decode"),
      etcd: of("store"),
      "mutating-webhook": of("mutatingWebhooks"),
      "response-write": of("write"),
      // As in Kubernetes with the time of writing.
      "serialize-response-object": of("serialize") + of("write"),
      "transform-response-object": of("transform"),
      "validating-webhook": of("validatingWebhooks"),
    };
    const measured = Object.entries(layers).filter(([, ms]) => ms > 0);
    return (measured.length === 0 ? [] : [...measured, ["total", total] as const]).map(([layer, ms]) => [
      `apiserver.latency.k8s.io/${layer}`,
      formatGoDuration(ms),
    ]);
  }
}
