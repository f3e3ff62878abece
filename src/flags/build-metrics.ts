/** Metrics of the build, of feature gates and of the metrics registry itself. */

import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { VersionInfo } from "../std/version-info.ts";
import type { GateStage } from "./gates.ts";

export interface FeatureState {
  readonly name: string;
  readonly stage: GateStage;
  readonly enabled: boolean;
}

export function registerBuildMetrics(
  registry: MetricRegistry,
  version: VersionInfo,
  features: readonly FeatureState[],
): void {
  const build = registry.gauge({
    name: "kubernetes_build_info",
    help:
      "A metric with a constant '1' value labeled by major, minor, git version, git commit, git " +
      "tree state, build date, Go version, and compiler from which Kubernetes was built, and " +
      "platform on which it is running.",
    stability: "ALPHA",
    labels: [
      "major",
      "minor",
      "git_version",
      "git_commit",
      "git_tree_state",
      "build_date",
      "go_version",
      "compiler",
      "platform",
    ],
  });
  const { major, minor, gitVersion, gitCommit, gitTreeState, buildDate, goVersion, compiler, platform } = version;
  build.with(major, minor, gitVersion, gitCommit, gitTreeState, buildDate, goVersion, compiler, platform).set(1);
  const enabled = registry.gauge({
    name: "kubernetes_feature_enabled",
    help: "This metric records the data about the stage and enablement of a k8s feature.",
    stability: "BETA",
    labels: ["name", "stage"],
  });
  for (const feature of features) {
    enabled.with(feature.name, feature.stage === "GA" ? "" : feature.stage).set(feature.enabled ? 1 : 0);
  }
}

/** Metrics of the registry, which are counted when they are shown. */
export function registerRegistryMetrics(registry: MetricRegistry): void {
  const registered = registry.counter({
    name: "registered_metrics_total",
    help: "The count of registered metrics broken by stability level and deprecation version.",
    stability: "BETA",
    labels: ["stability_level", "deprecated_version"],
  });
  const hidden = registry.counter({
    name: "hidden_metrics_total",
    help: "The count of hidden metrics.",
    stability: "BETA",
  });
  const disabled = registry.counter({
    name: "disabled_metrics_total",
    help: "The count of disabled metrics.",
    stability: "BETA",
  });
  const { policy } = registry;
  registry.onCollect(() => {
    const all = registry.all().map(({ options }) => options);
    const counts = Map.groupBy(all, ({ stability = "", deprecatedSince = "" }) => `${stability}/${deprecatedSince}`);
    for (const [key, { length }] of counts) {
      const [stability = "", deprecatedSince = ""] = key.split("/");
      registered.with(stability, deprecatedSince).value = length;
    }
    const old = all.filter(({ deprecatedSince }) => deprecatedSince !== undefined && policy.isHidden(deprecatedSince));
    hidden.with().value = policy.showHidden ? 0 : old.length;
    disabled.with().value = all.filter(({ name }) => policy.disabled.has(name)).length;
  });
}
