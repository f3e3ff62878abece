/** Metrics and statistics: `/metrics`, the pages below it, and `/stats/summary`. */
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { chooseMetricEncoding } from "../../../http/metrics/metric-encoding.ts";
import { resetMetrics } from "../../../http/metrics/metrics-page.ts";
import { bytesResponse, compressResponses, jsonResponse, textResponse } from "../../../http/respond.ts";
import { formatMetrics } from "../../../std/metrics/text-format.ts";
import { encodeMetricPage } from "../../metrics/protobuf-page.ts";
import type { Figures } from "../../stats/figures.ts";
import type { Endpoints } from "../endpoints.ts";

/** Smaller pages are sent as they are. */
const GZIP_THRESHOLD_BYTES = 1024;
const compress = compressResponses(GZIP_THRESHOLD_BYTES);

export function addFigurePages(endpoints: Endpoints, figures: Figures): void {
  const page = (path: string, render: () => Promise<string> | string): void =>
    endpoints.path(path, (request) =>
      compress(async () => metricPage(request.headers.accept, await render()))(request),
    );
  page("/metrics", async () => {
    await figures.refresh();
    return formatMetrics([figures.registry], "prometheus");
  });
  page("/metrics/probes", () => formatMetrics([figures.probes], "prometheus"));
  endpoints.path("/metrics/slis", async ({ method, headers }) =>
    method === "DELETE"
      ? resetMetrics([figures.slis])
      : metricPage(headers.accept, formatMetrics([figures.slis], "prometheus")),
  );
  page("/metrics/cadvisor", () => figures.renderContainers());
  page("/metrics/resource", () => figures.renderResources());
  const summary = { patterns: ["/summary"], methods: ["GET", "POST"], mediaType: "application/json" };
  endpoints.services("/stats", summary, (request) => serveSummary(figures, request));
  endpoints.redirect("/stats");
}

/** As kubelet, without OpenMetrics. */
function metricPage(accept: string | undefined, text: string): HttpResponse {
  const { encoding, mediaType } = chooseMetricEncoding(accept, ["text", "protobuf"]);
  const headers = { "process-start-time-unix": String(Math.floor(performance.timeOrigin / 1000)) };
  const body = encoding === "protobuf" ? encodeMetricPage(text) : Buffer.from(text);
  return bytesResponse(200, mediaType, body, headers);
}

async function serveSummary(figures: Figures, { query }: HttpRequest): Promise<HttpResponse> {
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
