import t from "tap";
import type { HorizontalPodAutoscaler } from "../horizontal-pod-autoscaler/schema.ts";
import { fromV2, toV2 } from "./conversion.ts";

const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
const cpu = { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 70 } } };
const METRICS = "autoscaling.alpha.kubernetes.io/metrics";

const rich: HorizontalPodAutoscaler = {
  metadata: { name: "web", annotations: { note: "mine" } },
  spec: {
    scaleTargetRef,
    minReplicas: 2,
    maxReplicas: 9,
    metrics: [
      {
        type: "ContainerResource",
        containerResource: {
          name: "memory",
          target: { type: "AverageValue", averageValue: "100Mi" },
          container: "main",
        },
      },
      {
        type: "Pods",
        pods: {
          metric: { name: "qps", selector: { matchLabels: { a: "b" } } },
          target: { type: "AverageValue", averageValue: "10" },
        },
      },
      {
        type: "Object",
        object: {
          describedObject: { kind: "Service", name: "s", apiVersion: "v1" },
          target: { type: "AverageValue", averageValue: "3" },
          metric: { name: "hits" },
        },
      },
      { type: "External", external: { metric: { name: "queue" }, target: { type: "Value", value: "5" } } },
      cpu,
    ],
    behavior: { scaleDown: { selectPolicy: "Min", policies: [{ type: "Pods", value: 1, periodSeconds: 60 }] } },
  },
  status: {
    currentReplicas: 3,
    desiredReplicas: 4,
    currentMetrics: [
      { type: "Resource", resource: { name: "cpu", current: { averageValue: "300m", averageUtilization: 60 } } },
    ],
    conditions: [{ type: "AbleToScale", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }],
  },
};

t.test("fromV2() stores fields that version 1 lacks in annotations", async (t) => {
  const old = fromV2(rich);
  t.same(old.spec, { scaleTargetRef, minReplicas: 2, maxReplicas: 9, targetCPUUtilizationPercentage: 70 });
  t.same(old.status, { currentReplicas: 3, desiredReplicas: 4, currentCPUUtilizationPercentage: 60 });
  const { annotations = {} } = old.metadata ?? {};
  t.same(
    Object.keys(annotations).sort(),
    ["behavior", "conditions", "current-metrics", "metrics"]
      .map((name) => `autoscaling.alpha.kubernetes.io/${name}`)
      .concat("note"),
  );
  t.match(JSON.parse(annotations[METRICS] ?? ""), [
    { type: "ContainerResource", containerResource: { targetAverageValue: "100Mi", container: "main" } },
    { type: "Pods", pods: { metricName: "qps", targetAverageValue: "10", selector: { matchLabels: { a: "b" } } } },
    { type: "Object", object: { target: { name: "s" }, targetValue: "0", averageValue: "3" } },
    { type: "External", external: { metricName: "queue", targetValue: "5" } },
  ]);
});

t.test("toV2() restores everything that fromV2() stored", async (t) => {
  t.strictSame(toV2(fromV2(rich)), rich);
});

t.test("toV2() defaults to CPU utilization without other metrics", async (t) => {
  const plain = { spec: { scaleTargetRef, maxReplicas: 3 } };
  const metricsOf = (object: Parameters<typeof toV2>[0]) => toV2(object).spec?.metrics;
  t.match(metricsOf(plain), [{ resource: { name: "cpu", target: { averageUtilization: 80 } } }]);
  t.same(metricsOf({ spec: { ...plain.spec, targetCPUUtilizationPercentage: 70 } }), [cpu]);
  for (const text of ["", "{", "[]", "7", '[{"pods":3}]', "null"]) {
    const metadata = { name: "web", annotations: { [METRICS]: text } };
    const read = toV2({ ...plain, metadata });
    t.match(read.spec?.metrics, [{ type: "Resource" }], `an invalid annotation is ignored: ${text}`);
    t.same(read.metadata, { name: "web" }, "and does not stay");
  }
});
