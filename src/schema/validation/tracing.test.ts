import t from "tap";
import { renderFieldError } from "./field-error.ts";
import { validateTracing } from "./tracing.ts";

const problems = (value: Parameters<typeof validateTracing>[0], path = "") =>
  validateTracing(value, path).map((error) => `${error.field}: ${renderFieldError(error)}`);

t.test("valid endpoints and rates", async (t) => {
  const endpoints = ["localhost:4317", "collector", "[::1]:4317", "dns:///collector:4317", "dns://8.8.8.8/collector"];
  for (const endpoint of [...endpoints, "unix:///run/otel.sock", "unix-abstract://otel"]) {
    t.same(problems({ endpoint }), [], endpoint);
  }
  for (const samplingRatePerMillion of [0, 1, 1_000_000]) t.same(problems({ samplingRatePerMillion }), []);
  t.same(problems({}), []);
});

t.test("invalid ones have Kubernetes' messages", async (t) => {
  t.same(problems({ samplingRatePerMillion: -1 }, "tracing"), [
    "tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
  ]);
  t.same(problems({ samplingRatePerMillion: 1_000_001 }), [
    "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million",
  ]);
  const unsupported =
    "unsupported scheme: http.  Options are none, dns, unix, or unix-abstract.  " +
    "See https://github.com/grpc/grpc/blob/master/doc/naming.md";
  t.same(problems({ endpoint: "http://localhost:4317" }), [
    `endpoint: Invalid value: "http://localhost:4317": ${unsupported}`,
  ]);
  t.same(problems({ endpoint: "localhost:port" }), [
    'endpoint: Invalid value: "dns://localhost:port": parse "dns://localhost:port": invalid port ":port" after host',
  ]);
  t.match(problems({ endpoint: "a\nb" }), [/invalid control character in URL/]);
  t.match(problems({ endpoint: "a b" }), [/invalid character " " in host name/]);
  t.match(problems({ endpoint: "://a" }), [/missing protocol scheme/]);
});
