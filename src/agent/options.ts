/** Converts flags and configuration files to the agent's configuration. */

import { hostname } from "node:os";
import { addQuantities, formatQuantity, parseQuantity } from "../api/meta/quantity.ts";
import { cborUseOf } from "../client/api-client.ts";
import { parseForwardRule } from "../dns/forward/forward-rule.ts";
import { type Flag, printValue } from "../flags/flag.ts";
import { reportedVersion } from "../flags/program.ts";
import { parseDuration } from "../flags/types/duration.ts";
import type { GateSettings } from "../flags/types/gate-settings.ts";
import { parseTlsVersion, toOpenSslCiphers } from "../http/tls/cipher-suites.ts";
import { policyTableName } from "../network-policy/table-name.ts";
import { nameSuffix, networkNames } from "../pod-network/network-names.ts";
import { KUBERNETES_VERSION } from "../std/version.ts";
import type { TracingConfig } from "../tracing/tracer.ts";
import type {
  AgentConfig,
  ApiConfig,
  CertificatesConfig,
  DnsConfig,
  EvictionConfig,
  GarbageConfig,
  NetworkPolicyConfig,
  NodeConfig,
  ObservabilityConfig,
  PodNetworkConfig,
  PodsConfig,
  RuntimeConfig,
  ServerConfig,
  ShutdownConfig,
  SourcesConfig,
  VolumesConfig,
} from "./agent-config.ts";
import { type EffectiveConfig, loadAgentConfig } from "./config/load.ts";
import { agentFlags } from "./flags.ts";
import { sortShutdownGroups, toShutdownGroups } from "./node/shutdown/priority-groups.ts";
import { validateAllowedSysctls } from "./pods/sandbox/sysctls.ts";
import { defaultRestartDelays, type RestartDelays } from "./pods/worker/restart-backoff.ts";
import { toReservations, toResourceManagersConfig } from "./resource-managers/to-config.ts";

/** The time that pods get to stop when the agent stops them. */
const SHUTDOWN_GRACE_SECONDS = 30;

/** The configuration of an agent that starts without flags, for `svc up` and tests to override. */
export function defaultAgentConfig(nodeName: string, featureGates: GateSettings = {}): AgentConfig {
  const gates = Object.entries(featureGates).map(([name, value]) => `--feature-gates=${name}=${value}`);
  const options = toAgentConfig(loadAgentConfig([`--hostname-override=${nodeName}`, ...gates], {}));
  const { oomScoreAdj: _score, maxOpenFiles: _files, ...shown } = options.configz as Readonly<Record<string, unknown>>;
  return {
    ...options,
    // Limits of the process and the host's iptables are left as they are.
    runtime: { ...options.runtime, oomScoreAdj: undefined, maxOpenFiles: undefined },
    node: { ...options.node, iptablesChains: false },
    configz: { ...shown, makeIPTablesUtilChains: false },
  };
}

/** Throws a message for the operator for values that cannot be used. */
export function toAgentConfig(effective: EffectiveConfig): AgentConfig {
  const { flags, config } = effective;
  validateAllowedSysctls(flags["allowed-unsafe-sysctls"]);
  const name = flags["hostname-override"] === "" ? hostname() : flags["hostname-override"];
  const nodeName = name.trim().toLowerCase();
  return {
    nodeName,
    version: reportedVersion(flags.version, KUBERNETES_VERSION),
    rootDir: flags["root-dir"],
    podLogsDir: config.podLogsDir,
    certDir: flags["cert-dir"],
    svcconfig: flags.svcconfig === "" ? undefined : flags.svcconfig,
    certificates: toCertificatesConfig(effective),
    api: toApiConfig(effective),
    runtime: toRuntimeConfig(effective),
    resources: toResourceManagersConfig(effective),
    node: toNodeConfig(effective),
    sources: toSourcesConfig(effective),
    pods: toPodsConfig(effective),
    garbage: toGarbageConfig(effective),
    eviction: toEvictionConfig(effective),
    shutdown: toShutdownConfig(effective),
    dns: toDnsConfig(effective),
    proxy: effective.flags["service-proxy"]
      ? { clusterCidrs: effective.flags["cluster-cidr"], serviceCidrs: [], table: "svc-proxy", isOptional: false }
      : undefined,
    podNetwork: toPodNetworkConfig(effective),
    networkPolicy: toNetworkPolicyConfig(effective),
    volumes: toVolumesConfig(effective),
    server: toServerConfig(effective),
    observability: toObservabilityConfig(effective),
    tracing: toTracingConfig(effective),
    configz: config,
  };
}

function toObservabilityConfig(effective: EffectiveConfig): ObservabilityConfig {
  const { config, gates } = effective;
  return {
    features: gates.list(),
    hiddenMetrics: (config.showHiddenMetricsForVersion ?? "") !== "",
    flags: gates.enabled("ComponentFlagz") ? printFlags(effective) : undefined,
    statusPage: gates.enabled("ComponentStatusz"),
    watchdog: gates.enabled("SystemdWatchdog"),
    readsPressure: gates.enabled("SvcletPSI"),
  };
}

function toTracingConfig({ config: { tracing } }: EffectiveConfig): TracingConfig | undefined {
  if (tracing === undefined) return undefined;
  const { endpoint, samplingRatePerMillion } = tracing;
  return { endpoint: endpoint ?? undefined, samplingRatePerMillion: samplingRatePerMillion ?? undefined };
}

function printFlags({ flags }: EffectiveConfig): Readonly<Record<string, string>> {
  const values: Readonly<Record<string, unknown>> = flags;
  return Object.fromEntries(
    Object.entries(agentFlags as Readonly<Record<string, Flag>>).map(([name, flag]) => [
      name,
      printValue(flag, values[name]),
    ]),
  );
}

function toCertificatesConfig({ flags, gates }: EffectiveConfig): CertificatesConfig {
  return {
    bootstrapSvcconfig: flags["bootstrap-svcconfig"] === "" ? undefined : flags["bootstrap-svcconfig"],
    rotateClient: flags["rotate-certificates"],
    rotateServing: flags["rotate-server-certificates"],
    servingWithoutAddresses: gates.enabled("AllowDNSOnlyNodeCSR"),
  };
}

function toApiConfig({ flags, gates }: EffectiveConfig): ApiConfig {
  return {
    qps: flags["svc-api-qps"] || agentFlags["svc-api-qps"].default,
    burst: flags["svc-api-burst"] || agentFlags["svc-api-burst"].default,
    contentType: flags["svc-api-content-type"],
    streamsLists: gates.enabled("WatchListClient"),
    cbor: cborUseOf(gates.enabled("ClientsAllowCBOR"), gates.enabled("ClientsPreferCBOR")),
  };
}

function toRuntimeConfig(effective: EffectiveConfig): RuntimeConfig {
  const { flags, config, gates } = effective;
  const endpoint = flags["container-runtime-endpoint"];
  return {
    endpoint,
    imageEndpoint: flags["image-service-endpoint"] === "" ? endpoint : flags["image-service-endpoint"],
    requestTimeoutMs: flags["runtime-request-timeout"],
    serializeImagePulls: flags["serialize-image-pulls"],
    registryQps: flags["registry-qps"],
    registryBurst: flags["registry-burst"],
    parallelImagePulls: config.maxParallelImagePulls,
    credentialProviders: toCredentialProviders(effective),
    pullVerification: toPullVerification(effective),
    cgroupDriver: flags["cgroup-driver"],
    adoptsCgroupDriver: gates.enabled("SvcletCgroupDriverFromCRI"),
    namesRuntimeHandler: gates.enabled("RuntimeClassInImageCriApi"),
    cgroupRoot: flags["cgroup-root"],
    cgroupsPerQos: flags["cgroups-per-qos"],
    enforce: flags["enforce-node-allocatable"] as RuntimeConfig["enforce"],
    ...toReservations(effective),
    systemReservedCgroup: flags["system-reserved-cgroup"],
    svcReservedCgroup: flags["svc-reserved-cgroup"],
    agentCgroup: flags["svclet-cgroups"],
    systemCgroup: flags["system-cgroups"],
    runtimeCgroup: flags["runtime-cgroups"],
    qosReserved: flags["qos-reserved"],
    podMaxPids: flags["pod-max-pids"],
    cpuCfsQuota: flags["cpu-cfs-quota"],
    cpuCfsQuotaPeriodMs: flags["cpu-cfs-quota-period"],
    seccompDefault: flags["seccomp-default"],
    failSwapOn: flags["fail-swap-on"],
    failCgroupV1: flags["fail-cgroupv1"],
    protectKernelDefaults: flags["protect-kernel-defaults"],
    singleProcessOomKill: config.singleProcessOOMKill,
    limitedSwap: config.memorySwap?.swapBehavior === "LimitedSwap",
    memoryThrottlingFactor: gates.enabled("MemoryQoS") ? config.memoryThrottlingFactor : undefined,
    measuresPods: gates.enabled("PodAndContainerStatsFromCRI"),
    oomScoreAdj: flags["oom-score-adj"],
    maxOpenFiles: flags["max-open-files"],
  };
}

function toPullVerification({ config, gates }: EffectiveConfig): RuntimeConfig["pullVerification"] {
  if (!gates.enabled("SvcletEnsureSecretPulledImages")) return undefined;
  return {
    policy: config.imagePullCredentialsVerificationPolicy || "NeverVerifyPreloadedImages",
    allowlist: config.preloadedImagesVerificationAllowlist ?? [],
  };
}

function toNodeConfig(effective: EffectiveConfig): NodeConfig {
  const { flags, config, gates } = effective;
  const { systemReserved, svcReserved } = toReservations(effective);
  return {
    register: flags["register-node"],
    labels: flags["node-labels"],
    taints: flags["register-with-taints"].map(({ key, value, effect }) => ({ key, value: value ?? "", effect })),
    unschedulable: !flags["register-schedulable"],
    readsNodeFirst: !gates.enabled("SvcletRegistrationGetOnExistsOnly"),
    reportsProxyVersion: !gates.enabled("DisableNodeKubeProxyVersion"),
    ips: flags["node-ip"],
    providerId: flags["provider-id"],
    statusUpdateMs: flags["node-status-update-frequency"],
    statusReportMs: parseMilliseconds(config.nodeStatusReportFrequency),
    leaseDurationSeconds: config.nodeLeaseDurationSeconds,
    statusMaxImages: flags["node-status-max-images"],
    maxPods: flags["max-pods"],
    podsPerCore: flags["pods-per-core"],
    reserved: addReservations(svcReserved, systemReserved),
    evictionHard: flags["eviction-hard"],
    allocatableIgnoresEviction: flags["experimental-allocatable-ignore-eviction"],
    podCidr: flags["pod-cidr"],
    externalCloud: flags["cloud-provider"] === "external",
    iptablesChains: flags["make-iptables-util-chains"],
  };
}

function toSourcesConfig({ flags }: EffectiveConfig): SourcesConfig {
  return {
    manifestPath: flags["pod-manifest-path"],
    fileCheckMs: flags["file-check-frequency"],
    manifestUrl: flags["manifest-url"],
    manifestUrlHeaders: flags["manifest-url-header"],
    httpCheckMs: flags["http-check-frequency"],
    runOnce: flags.runonce,
  };
}

function toGarbageConfig({ flags, config }: EffectiveConfig): GarbageConfig {
  return {
    images: {
      highPercent: flags["image-gc-high-threshold"],
      lowPercent: flags["image-gc-low-threshold"],
      minAgeMs: flags["minimum-image-ttl-duration"],
      maxAgeMs: parseMilliseconds(config.imageMaximumGCAge ?? "0s"),
    },
    sandboxImage: flags["pod-infra-container-image"],
    deadContainersMax: flags["maximum-dead-containers"],
  };
}

function toShutdownConfig({ config, gates }: EffectiveConfig): ShutdownConfig | undefined {
  if (!gates.enabled("GracefulNodeShutdown")) return undefined;
  const isByPriority = gates.enabled("GracefulNodeShutdownBasedOnPodPriority");
  const configured = (isByPriority ? config.shutdownGracePeriodByPodPriority : undefined) ?? [];
  const groups =
    configured.length > 0
      ? sortShutdownGroups(
          configured.map(({ priority, shutdownGracePeriodSeconds }) => ({
            priority,
            graceSeconds: Number(shutdownGracePeriodSeconds),
          })),
        )
      : toShutdownGroups(
          parseMilliseconds(config.shutdownGracePeriod ?? "0s"),
          parseMilliseconds(config.shutdownGracePeriodCriticalPods ?? "0s"),
        );
  return { groups, recordsTimes: isByPriority };
}

function toEvictionConfig({ flags, gates }: EffectiveConfig): EvictionConfig {
  const gracePeriods = Object.entries(flags["eviction-soft-grace-period"]);
  return {
    hard: flags["eviction-hard"],
    soft: flags["eviction-soft"],
    softGraceMs: Object.fromEntries(gracePeriods.map(([signal, text]) => [signal, parseMilliseconds(text)])),
    minimumReclaim: flags["eviction-minimum-reclaim"],
    maxPodGraceSeconds: flags["eviction-max-pod-grace-period"],
    overwritesPodGrace: gates.enabled("AllowOverwriteTerminationGracePeriodSeconds"),
    splitDisks: gates.enabled("SvcletSeparateDiskGC"),
    transitionMs: flags["eviction-pressure-transition-period"],
    kernelMemcgNotification: flags["kernel-memcg-notification"],
    enforcesPods: flags["enforce-node-allocatable"].includes("pods"),
  };
}

function toPodsConfig(effective: EffectiveConfig): PodsConfig {
  const { flags, config, gates } = effective;
  return {
    syncMs: flags["sync-frequency"],
    clusterDns: flags["cluster-dns"],
    clusterDomain: flags["cluster-domain"],
    resolvConf: flags["resolv-conf"],
    logMaxFiles: flags["container-log-max-files"],
    logMaxBytes: flags["container-log-max-size"],
    logMonitorMs: parseMilliseconds(config.containerLogMonitorInterval),
    logWorkers: config.containerLogMaxWorkers,
    allowedUnsafeSysctls: flags["allowed-unsafe-sysctls"],
    localStorageIsolation: flags["local-storage-capacity-isolation"],
    deadRunsMax: flags["maximum-dead-containers-per-container"],
    deadRunMinAgeMs: flags["minimum-container-ttl-duration"],
    restartDelays: toRestartDelays(effective),
    changeDetection: config.configMapAndSecretChangeDetectionStrategy,
    eventQps: flags["event-qps"] || agentFlags["event-qps"].default,
    eventBurst: flags["event-burst"] || agentFlags["event-burst"].default,
    shutdownGraceSeconds: SHUTDOWN_GRACE_SECONDS,
    stopSignals: gates.enabled("ContainerStopSignals"),
    podLevelResources: gates.enabled("PodLevelResources"),
    inPlaceResize: gates.enabled("InPlacePodVerticalScaling"),
    readyToStartCondition: gates.enabled("PodReadyToStartContainersCondition"),
    observedGeneration: gates.enabled("PodObservedGenerationTracking"),
    execProbeTimeout: gates.enabled("ExecProbeTimeout"),
    supplementalGroupsPolicy: gates.enabled("SupplementalGroupsPolicy"),
    idsPerPod: gates.enabled("UserNamespacesSupport") ? idsPerPod(effective) : undefined,
  };
}

function toDnsConfig({ flags }: EffectiveConfig): DnsConfig | undefined {
  if (!flags["serve-dns"]) return undefined;
  if (flags["cluster-dns"].length === 0 || flags["cluster-domain"] === "") {
    throw new Error("Cannot use --serve-dns without --cluster-dns and --cluster-domain");
  }
  return { forward: flags["dns-forward"].flatMap((text) => parseForwardRule(text) ?? []) };
}

/** Of 0, as of a field that is absent. */
const VOLUME_STATS_MS = 60_000;

function toPodNetworkConfig({ flags }: EffectiveConfig): PodNetworkConfig {
  const mode = flags["pod-network"];
  const clusterCidrs = flags["cluster-cidr"];
  if (mode !== "none" && clusterCidrs.length === 0) throw new Error("Cannot use --pod-network without --cluster-cidr");
  if (mode === "none" && clusterCidrs.length > 0 && !flags["service-proxy"]) {
    throw new Error("Cannot use --cluster-cidr without --pod-network or --service-proxy");
  }
  const suffix = nameSuffix(flags["root-dir"], agentFlags["root-dir"].default);
  const leaseDir = suffix === undefined ? "/run/svc-agent/addresses" : `/run/svc-agent-${suffix}/addresses`;
  const hairpin = flags["hairpin-mode"] !== "none";
  return { mode, clusterCidrs, names: networkNames(suffix), hairpin, confDir: undefined, leaseDir, isOptional: false };
}

function toNetworkPolicyConfig({ flags }: EffectiveConfig): NetworkPolicyConfig {
  const table = policyTableName(nameSuffix(flags["root-dir"], agentFlags["root-dir"].default));
  return { isEnabled: flags["network-policy"], table, isOptional: false };
}

function toVolumesConfig({ flags, gates }: EffectiveConfig): VolumesConfig {
  const statsMs = flags["volume-stats-agg-period"];
  return {
    controllerAttach: flags["enable-controller-attach-detach"],
    pluginDir: flags["volume-plugin-dir"],
    images: gates.enabled("ImageVolume"),
    gitRepositories: gates.enabled("GitRepoVolumeDriver"),
    health: gates.enabled("CSIVolumeHealth"),
    quotaMonitoring:
      gates.enabled("LocalStorageCapacityIsolationFSQuotaMonitoring") && gates.enabled("UserNamespacesSupport"),
    seLinuxMounts: seLinuxMounts(gates),
    statsMs: statsMs < 0 ? undefined : statsMs || VOLUME_STATS_MS,
  };
}

function seLinuxMounts(gates: EffectiveConfig["gates"]): VolumesConfig["seLinuxMounts"] {
  if (!gates.enabled("SELinuxMountReadWriteOncePod")) return "none";
  return gates.enabled("SELinuxMount") ? "all" : "ReadWriteOncePod";
}

function toServerConfig({ flags, config, gates }: EffectiveConfig): ServerConfig {
  return {
    enabled: flags["enable-server"],
    address: flags.address,
    port: flags.port,
    readOnlyPort: flags["read-only-port"],
    healthzAddress: flags["healthz-bind-address"],
    healthzPort: flags["healthz-port"],
    reloadsCertificate: gates.enabled("ReloadSvcletServerCertificateFile"),
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
      deniedMs: flags["authorization-webhook-cache-unauthorized-ttl"],
      fineGrained: gates.enabled("SvcletFineGrainedAuthz"),
    },
    debuggingHandlers: flags["enable-debugging-handlers"],
    splitLogs: gates.enabled("PodLogsQuerySplitStreams"),
    nodeLogs: config.enableSystemLogHandler,
    nodeLogQuery: gates.enabled("NodeLogQuery") && config.enableSystemLogQuery,
    checkpoints: gates.enabled("ContainerCheckpoint"),
    profiling: config.enableProfilingHandler,
    contentionProfiling: flags["contention-profiling"],
    debugFlags: config.enableDebugFlagsHandler,
    streamIdleMs: flags["streaming-connection-idle-timeout"],
    tunnel: flags.tunnel,
  };
}

/** Number of IDs of a pod with its own user namespace; programs expect 0 to 65535. */
function idsPerPod({ config }: EffectiveConfig): number {
  return Number(config.userNamespaces.idsPerPod);
}

function toRestartDelays({ config, gates }: EffectiveConfig): RestartDelays {
  const delays = gates.enabled("ReduceDefaultCrashLoopBackOffDecay") ? shorterRestartDelays : defaultRestartDelays;
  if (!gates.enabled("SvcletCrashLoopBackOffMax")) return delays;
  const { maxContainerRestartPeriod } = config.crashLoopBackOff ?? {};
  const maxMs =
    maxContainerRestartPeriod === undefined ? defaultRestartDelays.maxMs : parseMilliseconds(maxContainerRestartPeriod);
  return { initialMs: Math.min(delays.initialMs, maxMs), maxMs };
}

/** Kubernetes' delays with the gate ReduceDefaultCrashLoopBackOffDecay. */
const shorterRestartDelays: RestartDelays = { initialMs: 1_000, maxMs: 60_000 };

function toCredentialProviders({ flags, gates }: EffectiveConfig): RuntimeConfig["credentialProviders"] {
  const config = flags["image-credential-provider-config"];
  if (config === "") return undefined;
  const tokens = gates.enabled("SvcletServiceAccountTokenForCredentialProviders");
  return { config, binDir: flags["image-credential-provider-bin-dir"], tokens };
}

/** A duration that the configuration's schema has accepted, in milliseconds. */
function parseMilliseconds(text: string): number {
  const value = parseDuration(text);
  if (value === undefined) throw new RangeError(`${JSON.stringify(text)} is not a duration`);
  return value;
}

/** Adds two reservations resource by resource. */
function addReservations(
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
