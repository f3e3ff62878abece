/** Kubernetes' metrics of streams that the API server translates. */
import type { CounterFamily, MetricRegistry } from "../../../std/metrics/metrics.ts";

/** By status code. */
export interface StreamMetrics {
  readonly translated: CounterFamily;
  readonly tunnelled: CounterFamily;
}

export function registerStreamMetrics(metrics: MetricRegistry): StreamMetrics {
  const count = (name: string, proxy: string): CounterFamily =>
    metrics.counter({
      name,
      help: `Total number of requests that were handled by the ${proxy}`,
      stability: "ALPHA",
      labels: ["code"],
    });
  return {
    translated: count(
      "apiserver_stream_translator_requests_total",
      "StreamTranslatorProxy, which processes streaming RemoteCommand/V5",
    ),
    tunnelled: count(
      "apiserver_stream_tunnel_requests_total",
      "StreamTunnelProxy, which processes streaming PortForward/V2",
    ),
  };
}
