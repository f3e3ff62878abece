import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { AdmissionMetrics, WebhookMetrics } from "../../admission/chain/metrics.ts";
import { createNodeGraph } from "../../auth/authz/node/node-graph.ts";
import { createDecisionCounter, measureAuthenticator, measureAuthorizer } from "../../component/auth-metrics.ts";
import { type HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock } from "../../std/time/clock.ts";
import { createAuthenticationObserver } from "./authentication-metrics.ts";
import { createAuthorizerObserver } from "./authorizer-metrics.ts";
import { measureNodeGraph } from "./node-graph-metrics.ts";

interface RecordedMetric {
  readonly name: string;
  readonly type: string;
  readonly stability: string;
  readonly labels?: readonly string[];
  readonly buckets?: readonly (number | string)[];
}

const facts = `${process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname}/facts`;
const OURS =
  /^(?:apiserver_)?(?:authenticat|authoriz|client_certificate|externaljwt|admission|serviceaccount_|node_authorizer)/;
/** Summaries are expensive and contain no more than the histogram. */
const LEFT_OUT = "apiserver_admission_step_admission_duration_seconds_summary";

t.test("the metrics of authentication, authorization and admission have Kubernetes' types, labels and buckets", (t) => {
  if (!existsSync(facts)) {
    t.comment(`there is no ${facts}`);
    t.end();
    return;
  }
  const registry = new MetricRegistry();
  measureAuthenticator(() => undefined, registry, systemClock);
  measureAuthorizer({ authorize: async () => ({ decision: "allow", reason: "" }) }, registry, systemClock);
  createDecisionCounter(registry);
  createAuthenticationObserver(registry, systemClock);
  createAuthorizerObserver(registry, systemClock);
  measureNodeGraph(createNodeGraph(), registry, systemClock);
  new AdmissionMetrics(registry, systemClock);
  WebhookMetrics.of(registry);
  const families = new Map(registry.all().map((family) => [family.options.name, family]));
  const { metrics } = JSON.parse(readFileSync(`${facts}/apiserver-http.json`, "utf8")) as {
    readonly metrics: readonly RecordedMetric[];
  };
  for (const { name, type, stability, labels = [], buckets } of metrics) {
    if (!OURS.test(name) || name === LEFT_OUT) continue;
    const family = families.get(name);
    if (family === undefined) {
      t.fail(`${name} is not measured`);
      continue;
    }
    const found = { type: family.type, stability: family.options.stability, labels: [...family.labels].sort() };
    t.same(found, { type: type.toLowerCase(), stability, labels }, name);
    if (buckets !== undefined) t.same((family as HistogramFamily).bounds, buckets.map(Number), `${name}'s buckets`);
  }
  t.end();
});
