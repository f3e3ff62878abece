/** Metrics of plugins, with the names and labels of kubelet's. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { CredentialPluginObserver } from "../images/credential-providers.ts";
import type { PluginSocketObserver } from "../plugins/plugin-watcher.ts";
import { secondsBuckets } from "./buckets.ts";

const stability = "ALPHA";

/** The sockets in the registry of plugins, and those whose plugins are registered. */
export function createPluginMetrics(registry: MetricRegistry): PluginSocketObserver {
  const plugins = registry.gauge({
    name: "plugin_manager_total_plugins",
    help: "Number of plugins in Plugin Manager",
    stability,
    labels: ["socket_path", "state"],
  });
  return {
    onFound: (path) => plugins.with(path, "desired_state_of_world").set(1),
    onRegistered: (path) => plugins.with(path, "actual_state_of_world").set(1),
    onRemoved: (path) => plugins.removeWhere(([socketPath]) => socketPath === path),
  };
}

export function createCredentialPluginMetrics(registry: MetricRegistry): CredentialPluginObserver {
  const labels = ["plugin_name"];
  const prefix = "kubelet_credential_provider_plugin";
  const errors = registry.counter({
    name: `${prefix}_errors`,
    help: "Number of errors from credential provider plugin",
    stability,
    labels,
  });
  const durations = registry.histogram(
    {
      name: `${prefix}_duration`,
      help: "Duration of execution in seconds for credential provider plugin",
      stability,
      labels,
    },
    secondsBuckets,
  );
  return {
    onRun(plugin, hasFailed, seconds) {
      durations.with(plugin).observe(seconds);
      if (hasFailed) errors.with(plugin).inc();
    },
  };
}
