import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import type { Handler, HttpRequest, HttpResponse } from "./message.ts";

/** Kubernetes' buckets, in seconds. */
const DURATION_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** Kubernetes' buckets, in bytes. */
const SIZE_BUCKETS = [64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216];

/** Returns a function that records how long the rate limit delayed a request. */
export function createRateLimitObserver(
  registry: MetricRegistry,
  host: () => string,
): (method: string, milliseconds: number) => void {
  const delays = registry.histogram(
    {
      name: "rest_client_rate_limiter_duration_seconds",
      help: "Delay of requests by the rate limit of this process in seconds by method and host.",
      stability: "ALPHA",
      labels: ["verb", "host"],
    },
    DURATION_BUCKETS,
  );
  return (method, milliseconds) => delays.with(method, host()).observe(milliseconds / 1000);
}

/** Counts the requests of this process to a server; with `clock` also measures their durations and sizes. */
export function withClientMetrics(
  handler: Handler,
  registry: MetricRegistry,
  host: () => string,
  clock?: Clock,
): Handler {
  return createClientMetrics(registry, host, clock)(handler);
}

/** As `withClientMetrics()`, for several handlers that reach the same server. */
export function createClientMetrics(
  registry: MetricRegistry,
  host: () => string,
  clock?: Clock,
): (handler: Handler) => Handler {
  const requests = registry.counter({
    name: "rest_client_requests_total",
    help: "Number of HTTP requests, partitioned by status code, method, and host.",
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
  const sizes = clock && createSizeObservers(registry, host);
  return (handler) => async (request) => {
    const began = clock?.monotonic() ?? 0;
    try {
      const response = await handler(sizes?.observeRequest(request) ?? request);
      requests.with(String(response.status), request.method, host()).inc();
      return sizes?.observeResponse(request, response) ?? response;
    } catch (error) {
      requests.with("<error>", request.method, host()).inc();
      throw error;
    } finally {
      if (clock !== undefined) durations?.with(request.method, host()).observe((clock.monotonic() - began) / 1000);
    }
  };
}

interface SizeObservers {
  /** The request with a body whose size is recorded when it is sent. */
  observeRequest(request: HttpRequest): HttpRequest;
  /** The response with a body whose size is recorded when it has been read. */
  observeResponse(request: HttpRequest, response: HttpResponse): HttpResponse;
}

function createSizeObservers(registry: MetricRegistry, host: () => string): SizeObservers {
  const histogram = (direction: "request" | "response", help: string) =>
    registry.histogram(
      { name: `rest_client_${direction}_size_bytes`, help, stability: "ALPHA", labels: ["verb", "host"] },
      SIZE_BUCKETS,
    );
  const requests = histogram("request", "Size of the request's body in bytes by method and host.");
  const responses = histogram("response", "Size of the response's body in bytes by method and host.");
  return {
    observeRequest(request) {
      const sizes = requests.with(request.method, host());
      return { ...request, body: countBytes(request.body, (bytes) => sizes.observe(bytes)) };
    },
    observeResponse(request, response) {
      // As in Kubernetes, only of responses that end by themselves.
      if (/(?:^|&)watch=(?:1|true)/.test(request.query)) return response;
      const sizes = responses.with(request.method, host());
      const { body } = response;
      if (Symbol.asyncIterator in body) {
        return { ...response, body: countBytes(body, (bytes) => sizes.observe(bytes)) };
      }
      sizes.observe(body instanceof Uint8Array ? body.length : body.reduce((sum, { length }) => sum + length, 0));
      return response;
    },
  };
}

/** Calls `onEnd` when all chunks have been read. */
async function* countBytes(
  body: AsyncIterable<Uint8Array>,
  onEnd: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    yield chunk;
  }
  onEnd(bytes);
}
