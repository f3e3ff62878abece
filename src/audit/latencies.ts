/** Where the time of a slow request went: Kubernetes' annotations `apiserver.latency.k8s.io/…`. */
import { formatGoDuration } from "../std/time/go-duration.ts";
import type { Span } from "../tracing/span.ts";

/** Filters that report their time. */
export type MeasuredFilter = "authentication" | "authorization" | "queueWait";

/** After these steps of a handler only its response is left. */
const LAST_STEPS: ReadonlySet<string> = new Set([
  "About to write a response",
  "Items deleted from database",
  "Listing from storage done",
  "Object deleted from database",
  "Object stored in database",
  "Write to database call succeeded",
]);

export class RequestLatencies implements Record<MeasuredFilter, number> {
  authentication = 0;
  authorization = 0;
  queueWait = 0;
  span: Span | undefined;

  /** Layers without work have none; without any there is no `total`, from the arrival to the end of the response. */
  annotations(total: number): readonly (readonly [key: string, value: string])[] {
    const trace = this.span?.trace;
    const layers: Readonly<Record<string, number>> = {
      "apf-queue-wait": this.queueWait,
      authentication: this.authentication,
      authorization: this.authorization,
      etcd: trace?.latencyOf("store") ?? 0,
      "mutating-webhook": trace?.latencyOf("mutatingWebhooks") ?? 0,
      "serialize-response-object": responseMs(this.span),
      "validating-webhook": trace?.latencyOf("validatingWebhooks") ?? 0,
    };
    const measured = Object.entries(layers).filter(([, ms]) => ms > 0);
    return (measured.length === 0 ? [] : [...measured, ["total", total] as const]).map(([layer, ms]) => [
      `apiserver.latency.k8s.io/${layer}`,
      formatGoDuration(ms),
    ]);
  }
}

/** From the last step of the handler to its end. */
function responseMs(span: Span | undefined): number {
  const last = span?.events.at(-1);
  if (span?.endedAt === undefined || last === undefined || !LAST_STEPS.has(last.name)) return 0;
  return span.endedAt - last.at;
}
