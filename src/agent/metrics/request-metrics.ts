/** Counts the requests to the agent's server, with the names and labels of kubelet's metrics. */
import type { Handler } from "../../http/message.ts";
import type { CounterFamily, GaugeFamily, HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { secondsBuckets } from "./buckets.ts";

const LONG_RUNNING: ReadonlySet<string> = new Set(["exec", "attach", "portforward", "debug"]);

export class RequestMetrics {
  readonly #clock: Clock;
  readonly #total: CounterFamily;
  readonly #durations: HistogramFamily;
  readonly #inFlight: GaugeFamily;

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#clock = clock;
    const labels = ["method", "path", "server_type", "long_running"];
    const name = "kubelet_http_requests";
    const stability = "ALPHA";
    const help = "Number of the http requests received since the server started";
    this.#total = registry.counter({ name: `${name}_total`, help, stability, labels });
    this.#durations = registry.histogram(
      { name: `${name}_duration_seconds`, help: "Duration in seconds to serve http requests", stability, labels },
      secondsBuckets,
    );
    const inFlight = "Number of the inflight http requests";
    this.#inFlight = registry.gauge({ name: "kubelet_http_inflight_requests", help: inFlight, stability, labels });
  }

  /** `hasRoute`: only paths that the server has become labels, since clients choose the others. */
  wrap(handler: Handler, serverType: "readwrite" | "readonly", hasRoute: (path: string) => boolean): Handler {
    return async (request) => {
      const path = hasRoute(request.path) ? toRootPath(request.path) : "";
      const labels = [toMethod(request.method), path, serverType, String(LONG_RUNNING.has(path))] as const;
      const began = this.#clock.monotonic();
      const inFlight = this.#inFlight.with(...labels);
      this.#total.with(...labels).inc();
      inFlight.inc();
      try {
        return await handler(request);
      } finally {
        inFlight.dec();
        this.#durations.with(...labels).observe((this.#clock.monotonic() - began) / 1000);
      }
    };
  }
}

/** `/metrics/cadvisor` → `metrics/cadvisor`, and of other paths the first part. */
function toRootPath(path: string): string {
  const [first = "", second = ""] = path.split("/").slice(1);
  return first === "metrics" && second !== "" ? `${first}/${second}` : first;
}

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

function toMethod(method: string): string {
  return METHODS.has(method) ? method : "other";
}
