import t from "tap";
import type { Pod } from "../api/core/pod/schema.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { formatMetrics } from "../std/metrics/text-format.ts";
import { registerResourceMetrics } from "./resource-metrics.ts";

const container = (requests: Record<string, string>, limits: Record<string, string> = {}) => ({
  name: "c",
  resources: { requests, limits },
});

function pod(name: string, spec: Partial<NonNullable<Pod["spec"]>>, status: Pod["status"] = {}): Pod {
  return {
    metadata: { name, namespace: "default" },
    spec: { containers: [], schedulerName: "default-scheduler", ...spec },
    status,
  };
}

t.test("registerResourceMetrics() shows what pods request that have not ended", async (t) => {
  const registry = new MetricRegistry();
  const ended = { phase: "Succeeded" as const };
  const pods = [
    pod("web", {
      nodeName: "a",
      priority: 10,
      containers: [
        container({ cpu: "250m", memory: "64Mi", "example.com/gpu": "2" }, { cpu: "1" }),
        container({ cpu: "1" }),
      ],
      initContainers: [container({ memory: "128Mi" })],
      overhead: { cpu: "100m" },
    }),
    pod("ended", { nodeName: "a", containers: [container({ cpu: "1" })] }, ended),
    pod("waiting", { containers: [container({ "ephemeral-storage": "1Ki", "hugepages-2Mi": "2Mi" })] }, ended),
  ];
  registerResourceMetrics(registry, () => pods);
  const web = (resource: string, unit: string): string =>
    `{namespace="default",node="a",pod="web",priority="10",resource="${resource}",` +
    `scheduler="default-scheduler",unit="${unit}"}`;
  const lines = formatMetrics([registry], "prometheus")
    .split("\n")
    .filter((line) => line.startsWith("kube_"))
    .map((line) => line.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(",").sort().join()}}`));
  const waiting = web("ephemeral-storage", "bytes").replace('node="a"', 'node=""').replace('"10"', '""');
  t.same(
    lines.sort(),
    [
      `kube_pod_resource_limit${web("cpu", "cores")} 1.1`,
      `kube_pod_resource_request${web("cpu", "cores")} 1.35`,
      `kube_pod_resource_request${web("example.com/gpu", "integer")} 2`,
      `kube_pod_resource_request${web("memory", "bytes")} 1.34217728e+08`,
      `kube_pod_resource_request${waiting.replace("web", "waiting")} 1024`,
      `kube_pod_resource_request${waiting.replace("web", "waiting").replace("ephemeral-storage", "hugepages-2Mi")} 2.097152e+06`,
    ].sort(),
  );
});
