/** Metrics of token caches and client certificates, with the names and labels of Kubernetes' server library. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { TokenCacheObserver } from "./token/token-cache.ts";

const CACHE_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const HOUR = 3600;
const DAY = 24 * HOUR;
/** Kubernetes' buckets; expired certificates are in the first one. */
const CERTIFICATE_SECONDS = [
  ...[0, HOUR / 2, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY],
  ...[30 * DAY, 90 * DAY, 180 * DAY, 360 * DAY],
];

/** Returns a function that records the remaining validity of a client certificate; negative for an expired one. */
export function createCertificateObserver(registry: MetricRegistry): (milliseconds: number) => void {
  const name = "apiserver_client_certificate_expiration_seconds";
  const help = "Distribution of the remaining lifetime on the certificate used to authenticate a request.";
  const lasts = registry.histogram({ name, help, stability: "ALPHA" }, CERTIFICATE_SECONDS).with();
  return (milliseconds) => lasts.observe(milliseconds / 1000);
}

export function createTokenCacheObserver(registry: MetricRegistry): TokenCacheObserver {
  const family = (name: string, help: string) =>
    ({ name: `authentication_token_cache_${name}`, help, stability: "ALPHA", labels: ["status"] }) as const;
  const requests = registry.counter(family("request_total", "Token cache lookups by result."));
  const seconds = registry.histogram(
    family("request_duration_seconds", "Duration of token cache lookups in seconds."),
    CACHE_SECONDS,
  );
  const fetched = registry.counter(family("fetch_total", "Token authentications after a cache miss, by result."));
  const active = registry.gauge(family("active_fetch_count", "Token authentications in progress."));
  return {
    lookedUp(result, milliseconds) {
      requests.with(result).inc();
      seconds.with(result).observe(milliseconds / 1000);
    },
    fetchStarted() {
      const fetches = active.with("in_flight");
      fetches.inc();
      return () => fetches.dec();
    },
    fetchEnded: (result) => fetched.with(result).inc(),
  };
}
