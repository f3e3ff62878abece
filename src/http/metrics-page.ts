/** `/metrics` and `/metrics/slis`. */

import type { MetricRegistry } from "../std/metrics/metrics.ts";
import { formatMetrics, METRIC_MEDIA_TYPES } from "../std/metrics/text-format.ts";
import type { HttpResponse } from "./message.ts";
import { negotiate } from "./negotiate.ts";
import { bytesResponse, textResponse } from "./respond.ts";

const OFFERS = [
  { mediaType: "text/plain", format: "prometheus" },
  { mediaType: "application/openmetrics-text", format: "openmetrics" },
] as const;

/** A client that accepts neither format gets the first one, as scrapers expect. */
export function metricsResponse(registries: readonly MetricRegistry[], accept: string | undefined): HttpResponse {
  const chosen = negotiate(accept, OFFERS, (offer, { version }) => {
    if (version === undefined) return true;
    return offer.format === "prometheus" ? version === "0.0.4" : version === "1.0.0" || version === "0.0.1";
  });
  const format = chosen?.offer.format ?? "prometheus";
  return bytesResponse(200, METRIC_MEDIA_TYPES[format], Buffer.from(formatMetrics(registries, format)));
}

export function resetMetrics(registries: readonly MetricRegistry[]): HttpResponse {
  for (const registry of registries) registry.reset();
  return textResponse(200, "metrics reset\n");
}
