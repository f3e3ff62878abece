import t from "tap";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { formatMetrics } from "../std/metrics/text-format.ts";
import { versionInfo } from "../std/version-info.ts";
import { registerBuildMetrics, registerRegistryMetrics } from "./build-metrics.ts";

t.test("registerBuildMetrics() reports the version and the feature gates", async (t) => {
  const registry = new MetricRegistry();
  registerBuildMetrics(registry, versionInfo("v1.33.0"), [
    { name: "A", stage: "ALPHA", enabled: false },
    { name: "B", stage: "GA", enabled: true },
  ]);
  registerRegistryMetrics(registry);
  const text = formatMetrics([registry], "prometheus");
  t.match(text, /^kubernetes_build_info\{.*git_version="v1\.33\.0".*\} 1$/m);
  t.match(text, 'kubernetes_feature_enabled{name="A",stage="ALPHA"} 0\n');
  t.match(text, 'kubernetes_feature_enabled{name="B",stage=""} 1\n');
  t.match(text, 'registered_metrics_total{deprecated_version="",stability_level="ALPHA"} 1\n');
});
