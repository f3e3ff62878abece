import type { Handler } from "../../http/message.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";

/** Counts what parts of this process ask of its own server. */
export function withClientMetrics(handler: Handler, registry: MetricRegistry, host: () => string): Handler {
  const requests = registry.counter({
    name: "rest_client_requests_total",
    help: "Requests that this process made, by method, host and the status code they were answered with.",
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
