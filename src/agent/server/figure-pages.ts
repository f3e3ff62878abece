/** Metrics and statistics: `/metrics`, the pages below it, and `/stats/summary`. */
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { bytesResponse, compressResponses, jsonResponse, textResponse } from "../../http/respond.ts";
import { formatMetrics, METRIC_MEDIA_TYPES } from "../../std/metrics/text-format.ts";
import type { Figures } from "../stats/figures.ts";
import type { Endpoints } from "./endpoints.ts";
import { accepts, notAcceptable } from "./go-responses.ts";

/** Smaller pages are sent as they are. */
const GZIP_THRESHOLD_BYTES = 1024;
const compress = compressResponses(GZIP_THRESHOLD_BYTES);

export function addFigurePages(endpoints: Endpoints, figures: Figures): void {
  const page = (path: string, render: () => Promise<string> | string): void =>
    endpoints.path(path, (request) => compress(async () => textPage(await render()))(request));
  page("/metrics", async () => {
    await figures.refresh();
    return formatMetrics([figures.registry], "prometheus");
  });
  page("/metrics/probes", () => formatMetrics([figures.probes], "prometheus"));
  page("/metrics/cadvisor", () => figures.renderContainers());
  page("/metrics/resource", () => figures.renderResources());
  endpoints.services("/stats", ["/summary"], ["GET", "POST"], (request) => serveSummary(figures, request));
  endpoints.redirect("/stats");
}

function textPage(text: string): HttpResponse {
  const started = String(Math.floor(performance.timeOrigin / 1000));
  return bytesResponse(200, METRIC_MEDIA_TYPES.prometheus, Buffer.from(text), { "process-start-time-unix": started });
}

async function serveSummary(figures: Figures, { headers, query }: HttpRequest): Promise<HttpResponse> {
  if (!accepts(headers.accept, "application/json")) return notAcceptable("application/json");
  const only = new URLSearchParams(query).get("only_cpu_and_memory");
  try {
    return jsonResponse(200, await figures.readSummary(isTrue(only)));
  } catch (error) {
    return textResponse(500, `Internal Error: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** As Go's `strconv.ParseBool`; what it cannot parse is false. */
function isTrue(text: string | null): boolean {
  return text !== null && /^(?:1|t|T|TRUE|true|True)$/.test(text);
}
