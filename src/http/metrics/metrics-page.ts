/** `/metrics` and `/metrics/slis`. */

import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import type { HttpResponse } from "../message.ts";
import { bytesResponse, textResponse } from "../respond.ts";
import { chooseMetricEncoding } from "./metric-encoding.ts";

/** A client that accepts neither format gets the first one, as scrapers expect. */
export function metricsResponse(registries: readonly MetricRegistry[], accept: string | undefined): HttpResponse {
  const { encoding, mediaType } = chooseMetricEncoding(accept);
  const text = formatMetrics(registries, encoding === "openmetrics" ? "openmetrics" : "prometheus");
  return bytesResponse(200, mediaType, Buffer.from(text));
}

export function resetMetrics(registries: readonly MetricRegistry[]): HttpResponse {
  for (const registry of registries) registry.reset();
  return textResponse(200, "metrics reset\n");
}
