/** From flags and files to what the agent is told. */
import { hostname } from "node:os";
import { addQuantities, formatQuantity, parseQuantity } from "../api/meta/quantity.ts";
import { parseDuration } from "../flags/types/duration.ts";
import { toOpenSslCiphers, parseTlsVersion } from "../http/tls/cipher-suites.ts";
import { type AgentConfig, defaultAgentConfig } from "./agent-config.ts";
import type { EffectiveConfig } from "./config/load.ts";
import { type RestartDelays, defaultRestartDelays } from "./pods/worker/restart-backoff.ts";
import { validateAllowedSysctls } from "./pods/sandbox/sysctls.ts";

/** Throws with an operator's message for values that make no sense. */
export function agentOptions(effective: EffectiveConfig): AgentConfig {
  const { flags, config } = effective;
  validateAllowedSysctls(flags["allowed-unsafe-sysctls"]);
  const name = flags["hostname-override"] === "" ? hostname() : flags["hostname-override"];
  const nodeName = name.trim().toLowerCase();
  const base = defaultAgentConfig(nodeName);
  const endpoint = flags["container-runtime-endpoint"];
  return {
    ...base,
    nodeName,
    rootDir: flags["root-dir"],
    podLogsDir: config.podLogsDir ?? base.podLogsDir,
    certDir: flags["cert-dir"],
    svcconfig: flags.svcconfig === "" ? undefined : flags.svcconfig,
    certificates: {
      bootstrapSvcconfig: flags["bootstrap-svcconfig"] === "" ? undefined : flags["bootstrap-svcconfig"],
      rotateClient: flags["rotate-certificates"],
      rotateServing: flags["rotate-server-certificates"],
    },
    api: {
      qps: flags["svc-api-qps"] || base.api.qps,
      burst: flags["svc-api-burst"] || base.api.burst,
      contentType: flags["svc-api-content-type"],
    },
    runtime: {
      ...base.runtime,
      endpoint,
      imageEndpoint: flags["image-service-endpoint"] === "" ? endpoint : flags["image-service-endpoint"],
      requestTimeoutMs: flags["runtime-request-timeout"],
      serializeImagePulls: flags["serialize-image-pulls"],
      registryQps: flags["registry-qps"],
      registryBurst: flags["registry-burst"],
      parallelImagePulls: config.maxParallelImagePulls,
      credentialProviders: credentialProviders(effective),
      cgroupDriver: flags["cgroup-driver"],
      cgroupRoot: flags["cgroup-root"],
      cgroupsPerQos: flags["cgroups-per-qos"],
      enforce: flags["enforce-node-allocatable"] as AgentConfig["runtime"]["enforce"],
      systemReserved: flags["system-reserved"],
      svcReserved: flags["svc-reserved"],
      systemReservedCgroup: flags["system-reserved-cgroup"],
      svcReservedCgroup: flags["svc-reserved-cgroup"],
      agentCgroup: flags["svclet-cgroups"],
      systemCgroup: flags["system-cgroups"],
      qosReserved: flags["qos-reserved"],
      podMaxPids: flags["pod-max-pids"],
      cpuCfsQuota: flags["cpu-cfs-quota"],
      cpuCfsQuotaPeriodMs: flags["cpu-cfs-quota-period"],
      seccompDefault: flags["seccomp-default"],
      failSwapOn: flags["fail-swap-on"],
      failCgroupV1: flags["fail-cgroupv1"],
      protectKernelDefaults: flags["protect-kernel-defaults"],
      singleProcessOomKill: config.singleProcessOOMKill,
      oomScoreAdj: flags["oom-score-adj"],
      maxOpenFiles: flags["max-open-files"],
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
      statusReportMs: milliseconds(config.nodeStatusReportFrequency) ?? base.node.statusReportMs,
      leaseDurationSeconds: config.nodeLeaseDurationSeconds ?? base.node.leaseDurationSeconds,
      statusMaxImages: flags["node-status-max-images"],
      maxPods: flags["max-pods"],
      podsPerCore: flags["pods-per-core"],
      reserved: sum(flags["svc-reserved"], flags["system-reserved"]),
      evictionHard: flags["eviction-hard"],
      podCidr: flags["pod-cidr"],
      iptablesChains: flags["make-iptables-util-chains"],
    },
    sources: {
      manifestPath: flags["pod-manifest-path"],
      fileCheckMs: flags["file-check-frequency"],
      manifestUrl: flags["manifest-url"],
      manifestUrlHeaders: flags["manifest-url-header"],
      httpCheckMs: flags["http-check-frequency"],
      runOnce: flags.runonce,
    },
    pods: {
      ...base.pods,
      syncMs: flags["sync-frequency"],
      clusterDns: flags["cluster-dns"],
      clusterDomain: flags["cluster-domain"],
      resolvConf: flags["resolv-conf"],
      logMaxFiles: flags["container-log-max-files"],
      logMaxBytes: flags["container-log-max-size"],
      logMonitorMs: milliseconds(config.containerLogMonitorInterval) ?? base.pods.logMonitorMs,
      logWorkers: config.containerLogMaxWorkers ?? base.pods.logWorkers,
      allowedUnsafeSysctls: flags["allowed-unsafe-sysctls"],
      localStorageIsolation: flags["local-storage-capacity-isolation"],
      deadRunsMax: flags["maximum-dead-containers-per-container"],
      deadRunMinAgeMs: flags["minimum-container-ttl-duration"],
      restartDelays: restartDelaysOf(effective),
      changeDetection: config.configMapAndSecretChangeDetectionStrategy ?? base.pods.changeDetection,
      eventQps: flags["event-qps"] || base.pods.eventQps,
      eventBurst: flags["event-burst"] || base.pods.eventBurst,
      stopSignals: effective.gates.enabled("ContainerStopSignals"),
      idsPerPod: effective.gates.enabled("UserNamespacesSupport") ? idsPerPod(effective) : undefined,
    },
    volumes: {
      controllerAttach: flags["enable-controller-attach-detach"],
      pluginDir: flags["volume-plugin-dir"],
      images: effective.gates.enabled("ImageVolume"),
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
      tlsMinVersion: parseTlsVersion(flags["tls-min-version"]),
      tlsCiphers: toOpenSslCiphers(flags["tls-cipher-suites"]),
      clientCaFile: flags["client-ca-file"],
      anonymousAuth: flags["anonymous-auth"],
      tokenCacheMs: flags["authentication-token-webhook"] ? flags["authentication-token-webhook-cache-ttl"] : undefined,
      authorization: {
        mode: flags["authorization-mode"],
        allowedMs: flags["authorization-webhook-cache-authorized-ttl"],
        refusedMs: flags["authorization-webhook-cache-unauthorized-ttl"],
        fineGrained: effective.gates.enabled("SvcletFineGrainedAuthz"),
      },
      debuggingHandlers: flags["enable-debugging-handlers"],
    },
    configz: config,
  };
}

/** Ids that a pod with a user namespace of its own has; 0 to 65535 are those that programs expect. */
function idsPerPod({ config }: EffectiveConfig): number {
  return Number(config.userNamespaces?.idsPerPod ?? 65_536);
}

function restartDelaysOf({ config, gates }: EffectiveConfig): RestartDelays {
  const usual = gates.enabled("ReduceDefaultCrashLoopBackOffDecay") ? sooner : defaultRestartDelays;
  if (!gates.enabled("SvcletCrashLoopBackOffMax")) return usual;
  const maxMs = milliseconds(config.crashLoopBackOff?.maxContainerRestartPeriod) ?? defaultRestartDelays.maxMs;
  return { initialMs: Math.min(usual.initialMs, maxMs), maxMs };
}

/** Kubernetes' delays where the gate wants them shorter. */
const sooner: RestartDelays = { initialMs: 1_000, maxMs: 60_000 };

function credentialProviders({ flags, gates }: EffectiveConfig): AgentConfig["runtime"]["credentialProviders"] {
  const config = flags["image-credential-provider-config"];
  if (config === "") return undefined;
  const tokens = gates.enabled("SvcletServiceAccountTokenForCredentialProviders");
  return { config, binDir: flags["image-credential-provider-bin-dir"], tokens };
}

function milliseconds(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDuration(text);
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
