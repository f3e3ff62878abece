import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Handler } from "./message.ts";

/** Counts the requests of components in this process to their own server. */
export function withClientMetrics(handler: Handler, registry: MetricRegistry, host: () => string): Handler {
  const requests = registry.counter({
    name: "rest_client_requests_total",
    help: "Requests of this process by method, host and status code of the response.",
    stability: "ALPHA",
    labels: ["code", "method", "host"],
  });
  return async (request) => {
    try {
      const response = await handler(request);
      requests.with(String(response.status), request.method, host()).inc();
      return response;
    } catch (error) {
      requests.with("<error>", request.method, host()).inc();
      throw error;
    }
  };
}
