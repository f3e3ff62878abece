import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import type { Handler } from "./message.ts";

/** Kubernetes' buckets, in seconds. */
const DURATION_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

/** Counts the requests of this process to a server; with `clock` also measures them. */
export function withClientMetrics(
  handler: Handler,
  registry: MetricRegistry,
  host: () => string,
  clock?: Clock,
): Handler {
  const requests = registry.counter({
    name: "rest_client_requests_total",
    help: "Requests of this process by method, host and status code of the response.",
    stability: "ALPHA",
    labels: ["code", "method", "host"],
  });
  const durations =
    clock &&
    registry.histogram(
      {
        name: "rest_client_request_duration_seconds",
        help: "Time until the response of a request in seconds by method and host.",
        stability: "ALPHA",
        labels: ["verb", "host"],
      },
      DURATION_BUCKETS,
    );
  return async (request) => {
    const began = clock?.monotonic() ?? 0;
    try {
      const response = await handler(request);
      requests.with(String(response.status), request.method, host()).inc();
      return response;
    } catch (error) {
      requests.with("<error>", request.method, host()).inc();
      throw error;
    } finally {
      if (clock !== undefined) durations?.with(request.method, host()).observe((clock.monotonic() - began) / 1000);
    }
  };
}
