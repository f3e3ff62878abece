import t from "tap";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createCertificateObserver, createTokenCacheObserver } from "./authentication-metrics.ts";
import { BearerToken } from "./token/bearer-token.ts";
import { cacheTokens } from "./token/token-cache.ts";

t.test("createTokenCacheObserver() counts lookups and fetches by result", async (t) => {
  const registry = new MetricRegistry();
  const options = { clock: new FakeClock(), successTtlMs: 1000, failureTtlMs: 1000 };
  const user = { user: { name: "ali", uid: "", groups: [], extra: {} }, audiences: [] };
  const [good, broken] = [new BearerToken("good"), new BearerToken("broken")];
  const authenticate = cacheTokens(
    async (token) => {
      if (token === broken) throw new Error("no answer");
      return user;
    },
    { ...options, observe: createTokenCacheObserver(registry) },
  );
  for (const token of [good, good, broken]) {
    await Promise.resolve(authenticate(token, [])).catch(() => undefined);
  }
  const text = formatMetrics([registry], "prometheus");
  for (const line of [
    'request_total{status="hit"} 1',
    'request_total{status="miss"} 2',
    'request_duration_seconds_count{status="miss"} 2',
    'fetch_total{status="ok"} 1',
    'fetch_total{status="error"} 1',
    'active_fetch_count{status="in_flight"} 0',
  ]) {
    t.match(text, `authentication_token_cache_${line}\n`);
  }
});

t.test("createCertificateObserver() puts expired certificates into the first bucket", async (t) => {
  const registry = new MetricRegistry();
  const observe = createCertificateObserver(registry);
  for (const seconds of [-5, 3000]) observe(seconds * 1000);
  const text = formatMetrics([registry], "prometheus");
  t.match(text, 'apiserver_client_certificate_expiration_seconds_bucket{le="0"} 1\n');
  t.match(text, 'apiserver_client_certificate_expiration_seconds_bucket{le="3600"} 2\n');
});
