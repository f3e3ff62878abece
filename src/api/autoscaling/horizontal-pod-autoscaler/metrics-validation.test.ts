import t from "tap";
import { validateMetrics } from "./metrics-validation.ts";
import type { MetricSpec } from "./schema.ts";

const shown = (metric: MetricSpec) => validateMetrics([metric], "m", 1).map(({ field, detail }) => [field, detail]);

t.test("the target of a pods metric is set and positive", async (t) => {
  const pods = (averageValue?: string): MetricSpec => ({
    type: "Pods",
    pods: { metric: { name: "qps" }, target: { type: "AverageValue", averageValue } },
  });
  t.same(shown(pods("1")), []);
  t.same(shown(pods("0")), [["m[0].pods.target.averageValue", "must be positive"]]);
  t.same(shown(pods()), [["m[0].pods.target.averageValue", "must specify a positive target averageValue"]]);
});

t.test("the container of a container resource metric is a DNS label", async (t) => {
  const metric = (container: string): MetricSpec => ({
    type: "ContainerResource",
    containerResource: { name: "cpu", container, target: { type: "Utilization", averageUtilization: 50 } },
  });
  t.same(shown(metric("app")), []);
  t.same(shown(metric("")), [["m[0].containerResource.container", "must specify a container"]]);
  t.match(shown(metric("App.1")), [["m[0].containerResource.container", /^a lowercase RFC 1123 label must consist/]]);
});
