/** From flags and files to what the agent is told. */
import { hostname } from "node:os";
import { addQuantities, formatQuantity, parseQuantity } from "../api/meta/quantity.ts";
import { type AgentConfig, defaultAgentConfig } from "./agent-config.ts";
import type { EffectiveConfig } from "./config/load.ts";

/** Throws with an operator's message for combinations that this build cannot honour. */
export function agentOptions(effective: EffectiveConfig): AgentConfig {
  const { flags } = effective;
  if (flags["authorization-mode"] === "Webhook") {
    throw new Error(
      "Cannot start agent: --authorization-mode=Webhook is not supported; use AlwaysAllow with --client-ca-file and " +
        "--anonymous-auth=false",
    );
  }
  const name = flags["hostname-override"] === "" ? hostname() : flags["hostname-override"];
  const nodeName = name.trim().toLowerCase();
  const base = defaultAgentConfig(nodeName);
  const endpoint = flags["container-runtime-endpoint"];
  return {
    ...base,
    nodeName,
    rootDir: flags["root-dir"],
    podLogsDir: effective.config.podLogsDir ?? base.podLogsDir,
    certDir: flags["cert-dir"],
    svcconfig: flags.svcconfig === "" ? undefined : flags.svcconfig,
    runtime: {
      ...base.runtime,
      endpoint,
      imageEndpoint: flags["image-service-endpoint"] === "" ? endpoint : flags["image-service-endpoint"],
      requestTimeoutMs: flags["runtime-request-timeout"],
      serializeImagePulls: flags["serialize-image-pulls"],
      registryQps: flags["registry-qps"],
      registryBurst: flags["registry-burst"],
      cgroupDriver: flags["cgroup-driver"],
      cgroupRoot: flags["cgroup-root"],
      cgroupsPerQos: flags["cgroups-per-qos"],
      cpuCfsQuota: flags["cpu-cfs-quota"],
      cpuCfsQuotaPeriodMs: flags["cpu-cfs-quota-period"],
      seccompDefault: flags["seccomp-default"],
      failSwapOn: flags["fail-swap-on"],
      failCgroupV1: flags["fail-cgroupv1"],
    },
    node: {
      ...base.node,
      register: flags["register-node"],
      labels: flags["node-labels"],
      taints: flags["register-with-taints"].map(({ key, value, effect }) => ({ key, value: value ?? "", effect })),
      unschedulable: !flags["register-schedulable"],
      ips: flags["node-ip"],
      providerId: flags["provider-id"],
      statusUpdateMs: flags["node-status-update-frequency"],
      statusMaxImages: flags["node-status-max-images"],
      maxPods: flags["max-pods"],
      podsPerCore: flags["pods-per-core"],
      reserved: sum(flags["svc-reserved"], flags["system-reserved"]),
      evictionHard: flags["eviction-hard"],
    },
    pods: {
      ...base.pods,
      syncMs: flags["sync-frequency"],
      clusterDns: flags["cluster-dns"],
      clusterDomain: flags["cluster-domain"],
      resolvConf: flags["resolv-conf"],
      logMaxFiles: flags["container-log-max-files"],
      logMaxBytes: flags["container-log-max-size"],
      eventQps: flags["event-qps"],
      eventBurst: flags["event-burst"],
    },
    server: {
      ...base.server,
      enabled: flags["enable-server"],
      address: flags.address,
      port: flags.port,
      readOnlyPort: flags["read-only-port"],
      healthzAddress: flags["healthz-bind-address"],
      healthzPort: flags["healthz-port"],
      tlsCertFile: flags["tls-cert-file"],
      tlsKeyFile: flags["tls-private-key-file"],
      clientCaFile: flags["client-ca-file"],
      anonymousAuth: flags["anonymous-auth"],
      authorizationMode: "AlwaysAllow",
      debuggingHandlers: flags["enable-debugging-handlers"],
    },
    configz: effective.config,
  };
}

/** Adds two reservations resource by resource. */
function sum(
  a: Readonly<Record<string, string>>,
  b: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const total: Record<string, string> = { ...a };
  for (const [name, quantity] of Object.entries(b)) {
    const other = parseQuantity(total[name] ?? "0");
    const own = parseQuantity(quantity);
    total[name] = other === undefined || own === undefined ? quantity : formatQuantity(addQuantities(other, own));
  }
  return total;
}
