/** Effects of flags, configuration fields and gates that the agent's options show, or that end the start. */
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Test } from "tap";
import { parseAgentCommandLine } from "../../../agent/config/command-line.ts";
import { findKernelProblems } from "../../../agent/node/machine/kernel-tunables.ts";
import { findMachineProblem } from "../../../agent/node/machine/machine-check.ts";
import { toAgentConfig } from "../../../agent/options.ts";
import { logOptions } from "../../../flags/log-options.ts";
import { type AgentFlagName, createTestAgent } from "../../../testing/agent/flag-harness.ts";
import { loadMutant, withoutWithheld, withoutWithheldLine } from "../../../testing/flags/mutant.ts";

type ConfigEffect = (t: Test) => Promise<void>;

const HEADER = "apiVersion: svclet.config.svc.io/v1beta1\nkind: SvcletConfiguration\n";

export function fileWith(t: Test, text: string): string {
  return join(t.testdir({ "agent.yaml": `${HEADER}${text}` }), "agent.yaml");
}

const configOf = (...argv: readonly string[]) => toAgentConfig(loadMutant(argv));
const print = (...argv: readonly string[]) => parseAgentCommandLine(withoutWithheld(argv), {}, { version: "v1.33.0" });

export const separateEffects: Partial<Record<AgentFlagName, ConfigEffect>> = {
  "authorization-mode": async (t) => {
    const mode = (...argv: string[]) => configOf(...argv).server.authorization.mode;
    t.equal(mode(), "AlwaysAllow");
    t.equal(mode("--authorization-mode=Webhook"), "Webhook");
    const file = fileWith(t, "");
    t.equal(mode(`--config=${file}`), "Webhook", "the default with a configuration file");
    t.equal(mode(`--config=${file}`, "--authorization-mode=AlwaysAllow"), "AlwaysAllow");
  },
  config: async (t) => {
    const { flags } = loadMutant([`--config=${fileWith(t, "maxPods: 7\n")}`]);
    t.match(flags, { "max-pods": 7 });
  },
  "config-dir": async (t) => {
    const file = fileWith(t, "maxPods: 7\npodsPerCore: 3\n");
    writeFileSync(join(dirname(file), "10.conf"), `${HEADER}maxPods: 8\n`);
    const { flags } = loadMutant([`--config=${file}`, `--config-dir=${dirname(file)}`]);
    t.match(flags, { "max-pods": 8, "pods-per-core": 3 });
  },
  "dry-run-config": async (t) => {
    const exit = { kind: "exit", code: 0, stdout: /^maxPods: 7 +# flag/m };
    t.match(print("--dry-run-config", "--max-pods=7"), exit);
  },
  version: async (t) => {
    t.match(print("--version"), { kind: "exit", code: 0, stdout: "agent v1.33.0\n" });
    t.match(print("--version=v1.33.9-site"), { kind: "run", version: "v1.33.9-site" });
    for (const version of ["false", "v1.33.9-site"]) {
      await using agent = await createTestAgent("flag", { version });
      await agent.start();
      const { nodeInfo } = agent.getNode().status as { nodeInfo: { kubeletVersion: string } };
      t.match(nodeInfo.kubeletVersion, version === "false" ? /^v1\.33\.\d+/ : /^v1\.33\.9-site$/);
    }
  },
  help: async (t) => {
    t.match(print("--help"), { kind: "exit", code: 0, stdout: /Usage:/ });
  },
  "protect-kernel-defaults": async (t) => {
    const directory = t.testdir({ vm: { overcommit_memory: "0\n", panic_on_oom: "0\n" } });
    const kernel = await findKernelProblems(directory);
    t.same(kernel, ["invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0"]);
    const problem = (...argv: string[]) => findMachineProblem(configOf(...argv), { swap: [], cgroupV1: false, kernel });
    t.equal(problem(), undefined);
    t.match(problem("--protect-kernel-defaults"), /^invalid kernel flag: .*--protect-kernel-defaults=false$/);
  },
  "fail-swap-on": async (t) => {
    const machine = { swap: ["/dev/sdb2"], cgroupV1: false };
    t.match(findMachineProblem(configOf(), machine), /swap is on \(\/dev\/sdb2\).*--fail-swap-on=false/);
    t.equal(findMachineProblem(configOf("--fail-swap-on=false"), machine), undefined);
    t.equal(findMachineProblem(configOf(), { ...machine, swap: [] }), undefined);
  },
  "fail-cgroupv1": async (t) => {
    const machine = { swap: [], cgroupV1: true };
    t.match(findMachineProblem(configOf(), machine), /uses cgroup v1.*--fail-cgroupv1=false/);
    t.equal(findMachineProblem(configOf("--fail-cgroupv1=false"), machine), undefined);
    const inFile = (text: string) => configOf(`--config=${fileWith(t, `authorization: {mode: AlwaysAllow}\n${text}`)}`);
    t.equal(findMachineProblem(inFile(""), machine), undefined, "the default with a configuration file");
    t.match(findMachineProblem(inFile("failCgroupV1: true\n"), machine), /uses cgroup v1/);
  },
  "rotate-certificates": async (t) => {
    t.equal(configOf().certificates.rotateClient, false);
    t.equal(configOf("--rotate-certificates").certificates.rotateClient, true);
  },
  "rotate-server-certificates": async (t) => {
    t.equal(configOf().certificates.rotateServing, false);
    t.equal(configOf("--rotate-server-certificates").certificates.rotateServing, true);
  },
  "streaming-connection-idle-timeout": async (t) => {
    t.equal(configOf("--streaming-connection-idle-timeout=2s").server.streamIdleMs, 2000);
  },
  "cloud-config": async (t) => {
    const { flags, warnings } = loadMutant(["--cloud-config=/etc/cloud.conf"]);
    t.equal(flags["cloud-config"], "/etc/cloud.conf");
    t.match(warnings.join("\n"), /--cloud-config has been deprecated.*removing cloud providers code from Kubelet/);
  },
  "experimental-mounter-path": async (t) => {
    const { flags, warnings } = loadMutant(["--experimental-mounter-path=/opt/mounter"]);
    t.equal(flags["experimental-mounter-path"], "/opt/mounter");
    t.match(warnings.join("\n"), /--experimental-mounter-path changes nothing: CSI drivers mount/);
  },
  "bootstrap-svcconfig": async (t) => {
    const { certificates } = configOf("--svcconfig=/etc/a", "--bootstrap-svcconfig=/etc/b");
    t.equal(certificates.bootstrapSvcconfig, "/etc/b");
  },
};

/** The configuration file, and what the options then have. */
interface FieldEffect {
  readonly text: string;
  readonly options: object;
}

/** By configuration field without a flag. */
export const fieldEffects: Readonly<Record<string, FieldEffect>> = {
  configMapAndSecretChangeDetectionStrategy: {
    text: "configMapAndSecretChangeDetectionStrategy: Get",
    options: { pods: { changeDetection: "Get" } },
  },
  containerLogMaxWorkers: { text: "containerLogMaxWorkers: 4", options: { pods: { logWorkers: 4 } } },
  containerLogMonitorInterval: { text: "containerLogMonitorInterval: 3s", options: { pods: { logMonitorMs: 3000 } } },
  "crashLoopBackOff.maxContainerRestartPeriod": {
    text: "featureGates: {KubeletCrashLoopBackOffMax: true}\ncrashLoopBackOff: {maxContainerRestartPeriod: 7s}",
    options: { pods: { restartDelays: { initialMs: 7000, maxMs: 7000 } } },
  },
  enableDebugFlagsHandler: { text: "enableDebugFlagsHandler: false", options: { server: { debugFlags: false } } },
  enableProfilingHandler: { text: "enableProfilingHandler: false", options: { server: { profiling: false } } },
  enableSystemLogHandler: { text: "enableSystemLogHandler: false", options: { server: { nodeLogs: false } } },
  enableSystemLogQuery: {
    text: "enableSystemLogQuery: true\nfeatureGates: {NodeLogQuery: true}",
    options: { server: { nodeLogQuery: true } },
  },
  imageMaximumGCAge: {
    text: "imageMaximumGCAge: 10h",
    options: { garbage: { images: { maxAgeMs: 36_000_000 } } },
  },
  imagePullCredentialsVerificationPolicy: {
    text: "featureGates: {KubeletEnsureSecretPulledImages: true}\nimagePullCredentialsVerificationPolicy: AlwaysVerify",
    options: { runtime: { pullVerification: { policy: "AlwaysVerify", allowlist: [] } } },
  },
  iptablesDropBit: { text: "iptablesDropBit: 12", options: { configz: { iptablesDropBit: 12 } } },
  iptablesMasqueradeBit: { text: "iptablesMasqueradeBit: 13", options: { configz: { iptablesMasqueradeBit: 13 } } },
  maxParallelImagePulls: {
    text: "maxParallelImagePulls: 3\nserializeImagePulls: false",
    options: { runtime: { serializeImagePulls: false, parallelImagePulls: 3 } },
  },
  "memorySwap.swapBehavior": {
    text: "memorySwap: {swapBehavior: LimitedSwap}",
    options: { runtime: { limitedSwap: true } },
  },
  memoryThrottlingFactor: {
    text: "featureGates: {MemoryQoS: true}\nmemoryThrottlingFactor: 0.7",
    options: { runtime: { memoryThrottlingFactor: 0.7 } },
  },
  mergeDefaultEvictionSettings: {
    text: "mergeDefaultEvictionSettings: true\nevictionHard: {memory.available: 1Gi}",
    options: { eviction: { hard: { "memory.available": "1Gi", "nodefs.available": "10%" } } },
  },
  nodeLeaseDurationSeconds: {
    text: "nodeLeaseDurationSeconds: 20",
    options: { node: { leaseDurationSeconds: 20 } },
  },
  nodeStatusReportFrequency: {
    text: "nodeStatusReportFrequency: 1m",
    options: { node: { statusReportMs: 60_000 } },
  },
  podLogsDir: { text: "podLogsDir: /var/log/edge", options: { podLogsDir: "/var/log/edge" } },
  preloadedImagesVerificationAllowlist: {
    text:
      "featureGates: {KubeletEnsureSecretPulledImages: true}\n" +
      "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n" +
      "preloadedImagesVerificationAllowlist: [r.test/team/*]",
    options: {
      runtime: { pullVerification: { policy: "NeverVerifyAllowlistedImages", allowlist: ["r.test/team/*"] } },
    },
  },
  showHiddenMetricsForVersion: {
    text: "showHiddenMetricsForVersion: '1.32'",
    options: { observability: { hiddenMetrics: true } },
  },
  shutdownGracePeriod: {
    text: "shutdownGracePeriod: 30s",
    options: { shutdown: { groups: [{ priority: 0, graceSeconds: 30 }, { graceSeconds: 0 }] } },
  },
  shutdownGracePeriodByPodPriority: {
    text: "shutdownGracePeriodByPodPriority: [{priority: 9, shutdownGracePeriodSeconds: 5}]",
    options: { shutdown: { groups: [{ priority: 9, graceSeconds: 5 }] } },
  },
  shutdownGracePeriodCriticalPods: {
    text: "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s",
    options: { shutdown: { groups: [{ graceSeconds: 20 }, { priority: 2_000_000_000, graceSeconds: 10 }] } },
  },
  singleProcessOOMKill: {
    text: "singleProcessOOMKill: false",
    options: { runtime: { singleProcessOomKill: false } },
  },
  "tracing.endpoint": {
    text: "tracing: {endpoint: 'collector:4317'}",
    options: { tracing: { endpoint: "collector:4317" } },
  },
  "tracing.samplingRatePerMillion": {
    text: "tracing: {samplingRatePerMillion: 7}",
    options: { tracing: { samplingRatePerMillion: 7 } },
  },
  "userNamespaces.idsPerPod": {
    text: "featureGates: {UserNamespacesSupport: true}\nuserNamespaces: {idsPerPod: 131072}",
    options: { pods: { idsPerPod: 131_072 } },
  },
};

export async function verifyField(t: Test, { text, options }: FieldEffect): Promise<void> {
  const written = withoutWithheldLine(text);
  const config = configOf(`--config=${fileWith(t, `authorization: {mode: AlwaysAllow}\n${written}\n`)}`);
  t.match(config, options);
}

/** By gate: the options that the other value sets. */
const gateOptions: Readonly<Record<string, { readonly set: boolean; readonly options: object }>> = {
  CPUManagerPolicyAlphaOptions: { set: true, options: { resources: { cpu: { gates: { alpha: true } } } } },
  CPUManagerPolicyBetaOptions: { set: false, options: { resources: { cpu: { gates: { beta: false } } } } },
  MemoryQoS: { set: true, options: { runtime: { memoryThrottlingFactor: 0.9 } } },
  AllowOverwriteTerminationGracePeriodSeconds: { set: true, options: { eviction: { overwritesPodGrace: true } } },
  ContainerCheckpoint: { set: false, options: { server: { checkpoints: false } } },
  SvcletCgroupDriverFromCRI: { set: false, options: { runtime: { adoptsCgroupDriver: false } } },
  SvcletSeparateDiskGC: { set: false, options: { eviction: { splitDisks: false } } },
  WatchListClient: { set: true, options: { api: { streamsLists: true } } },
  PodAndContainerStatsFromCRI: { set: true, options: { runtime: { measuresPods: true } } },
  CSIVolumeHealth: { set: true, options: { volumes: { health: true } } },
  ClientsAllowCBOR: { set: true, options: { api: { cbor: "accept" } } },
  AllowDNSOnlyNodeCSR: { set: true, options: { certificates: { servingWithoutAddresses: true } } },
  DisableNodeKubeProxyVersion: { set: false, options: { node: { reportsProxyVersion: true } } },
  ExecProbeTimeout: { set: false, options: { pods: { execProbeTimeout: false } } },
  PodLevelResources: { set: true, options: { pods: { podLevelResources: true } } },
  PodObservedGenerationTracking: { set: true, options: { pods: { observedGeneration: true } } },
  PodReadyToStartContainersCondition: { set: false, options: { pods: { readyToStartCondition: false } } },
  SELinuxMount: { set: true, options: { volumes: { seLinuxMounts: "all" } } },
  SELinuxMountReadWriteOncePod: { set: false, options: { volumes: { seLinuxMounts: "none" } } },
  ReloadSvcletServerCertificateFile: { set: false, options: { server: { reloadsCertificate: false } } },
  SvcletRegistrationGetOnExistsOnly: { set: true, options: { node: { readsNodeFirst: false } } },
  RuntimeClassInImageCriApi: { set: true, options: { runtime: { namesRuntimeHandler: true } } },
  SvcletPSI: { set: true, options: { observability: { readsPressure: true } } },
  SystemdWatchdog: { set: false, options: { observability: { watchdog: false } } },
  ContainerStopSignals: { set: true, options: { pods: { stopSignals: true } } },
  DisableCPUQuotaWithExclusiveCPUs: {
    set: false,
    options: { resources: { cpu: { quotaOffForExclusive: false } } },
  },
  DynamicResourceAllocation: { set: true, options: { resources: { preparesClaims: true } } },
  ImageVolume: { set: true, options: { volumes: { images: true } } },
  InPlacePodVerticalScaling: { set: false, options: { pods: { inPlaceResize: false } } },
  InPlacePodVerticalScalingExclusiveCPUs: { set: true, options: { resources: { cpu: { resizesExclusive: true } } } },
  PodLogsQuerySplitStreams: { set: true, options: { server: { splitLogs: true } } },
  ReduceDefaultCrashLoopBackOffDecay: {
    set: true,
    options: { pods: { restartDelays: { initialMs: 1000, maxMs: 60_000 } } },
  },
  SupplementalGroupsPolicy: { set: false, options: { pods: { supplementalGroupsPolicy: false } } },
  SvcletFineGrainedAuthz: { set: true, options: { server: { authorization: { fineGrained: true } } } },
  ResourceHealthStatus: { set: true, options: { resources: { reportsDeviceHealth: true } } },
  SvcletPodResourcesDynamicResources: { set: true, options: { resources: { servesDynamicResources: true } } },
  SvcletPodResourcesGet: { set: true, options: { resources: { servesPodResourcesGet: true } } },
  TopologyManagerPolicyBetaOptions: { set: false, options: { resources: { topology: { gates: { beta: false } } } } },
  UserNamespacesSupport: { set: true, options: { pods: { idsPerPod: 65_536 } } },
};

/** A gate that a flag needs. */
function allowsFlag(gate: string, normal: boolean, ...flags: readonly string[]): ConfigEffect {
  return async (t) => {
    configOf(...flags, `--feature-gates=${gate}=true`);
    const gates = normal ? [`--feature-gates=${gate}=false`] : [];
    t.throws(() => configOf(...flags, ...gates), new RegExp(`needs feature gate ${gate}`));
  };
}

/** By gate. Gates that allow flags and fields end the start while they are off. */
export const agentGateEffects: Readonly<Record<string, ConfigEffect>> = {
  ...Object.fromEntries(
    Object.entries(gateOptions).map(([name, { set, options }]) => [
      name,
      async (t: Test) => {
        t.notMatch(configOf(), options);
        t.match(configOf(`--feature-gates=${name}=${set}`), options);
      },
    ]),
  ),
  ClientsPreferCBOR: async (t) => {
    t.equal(configOf("--feature-gates=ClientsPreferCBOR=true").api.cbor, undefined, "CBOR is not allowed");
    t.equal(configOf("--feature-gates=ClientsAllowCBOR=true,ClientsPreferCBOR=true").api.cbor, "prefer");
  },
  AllAlpha: async (t) => {
    t.equal(configOf().pods.stopSignals, false);
    t.equal(configOf("--feature-gates=AllAlpha=true").pods.stopSignals, true);
  },
  AllBeta: async (t) => {
    t.equal(configOf().pods.inPlaceResize, true);
    t.equal(configOf("--feature-gates=AllBeta=false").pods.inPlaceResize, false);
  },
  ContextualLogging: async (t) => {
    for (const value of [true, false]) {
      const { flags, gates } = loadMutant(value ? [] : ["--feature-gates=ContextualLogging=false"]);
      t.equal(logOptions(flags, gates.enabled("ContextualLogging")).isContextual, value);
    }
  },
  ComponentFlagz: async (t) => {
    t.equal(configOf().observability.flags, undefined);
    t.match(configOf("--feature-gates=ComponentFlagz=true").observability.flags, { "max-pods": "110" });
  },
  ImageMaximumGCAge: async (t) => {
    const file = fileWith(t, "imageMaximumGCAge: 1h\n");
    t.equal(configOf(`--config=${file}`).garbage.images.maxAgeMs, 3_600_000);
    const off = "--feature-gates=ImageMaximumGCAge=false";
    t.throws(() => configOf(`--config=${file}`, off), /needs feature gate ImageMaximumGCAge/);
  },
  NodeSwap: async (t) => {
    const file = fileWith(t, "memorySwap: {swapBehavior: LimitedSwap}\n");
    t.equal(configOf(`--config=${file}`).runtime.limitedSwap, true);
    t.throws(() => configOf(`--config=${file}`, "--feature-gates=NodeSwap=false"), /needs feature gate NodeSwap/);
  },
  NodeLogQuery: async (t) => {
    const file = fileWith(t, "enableSystemLogQuery: true\n");
    const query = (...argv: string[]) => configOf(`--config=${file}`, ...argv).server.nodeLogQuery;
    t.equal(query("--feature-gates=NodeLogQuery=true"), true);
    t.throws(() => query(), /enableSystemLogQuery: needs feature gate NodeLogQuery/);
  },
  ComponentStatusz: async (t) => {
    t.equal(configOf().observability.statusPage, false);
    t.equal(configOf("--feature-gates=ComponentStatusz=true").observability.statusPage, true);
  },
  CPUManagerPolicyOptions: async (t) => {
    const options = "--cpu-manager-policy-options=full-pcpus-only=true";
    t.same(configOf(options).resources.cpu.options, { "full-pcpus-only": "true" });
    t.throws(() => configOf(options, "--feature-gates=CPUManagerPolicyOptions=false"), {
      message:
        "CPU Manager policy options map[full-pcpus-only:true] require feature gates " +
        '"CPUManager", "CPUManagerPolicyOptions" enabled',
    });
  },
  TopologyManagerPolicyOptions: async (t) => {
    const options = "--topology-manager-policy-options=prefer-closest-numa-nodes=true";
    t.same(configOf(options).resources.topology.options, { "prefer-closest-numa-nodes": "true" });
    t.throws(() => configOf(options, "--feature-gates=TopologyManagerPolicyOptions=false"), {
      message:
        "topology manager policy options map[prefer-closest-numa-nodes:true] require feature gates " +
        '"TopologyManagerPolicyOptions" enabled',
    });
  },
  GitRepoVolumeDriver: async (t) => {
    const clones = (...argv: string[]) => configOf(...argv).volumes.gitRepositories;
    t.equal(clones(), false);
    t.equal(clones("--feature-gates=GitRepoVolumeDriver=true"), true);
  },
  LocalStorageCapacityIsolationFSQuotaMonitoring: async (t) => {
    const counts = (...gates: readonly string[]) =>
      configOf(`--feature-gates=${gates.join(",")}`).volumes.quotaMonitoring;
    t.equal(counts("UserNamespacesSupport=true"), true);
    t.equal(counts("UserNamespacesSupport=false"), false, "files of other pods");
    t.equal(counts("UserNamespacesSupport=true", "LocalStorageCapacityIsolationFSQuotaMonitoring=false"), false);
  },
  CustomCPUCFSQuotaPeriod: allowsFlag("CustomCPUCFSQuotaPeriod", false, "--cpu-cfs-quota-period=5ms"),
  LoggingAlphaOptions: allowsFlag("LoggingAlphaOptions", false, "--log-text-split-stream"),
  LoggingBetaOptions: allowsFlag("LoggingBetaOptions", true, "--logging-format=json"),
  QOSReserved: allowsFlag("QOSReserved", false, "--qos-reserved=memory=50%"),
  RotateSvcletServerCertificate: allowsFlag("RotateSvcletServerCertificate", true, "--rotate-server-certificates"),
  SvcletEnsureSecretPulledImages: async (t) => {
    const verification = (...argv: readonly string[]) => configOf(...argv).runtime.pullVerification;
    const on = "--feature-gates=SvcletEnsureSecretPulledImages=true";
    t.equal(verification(), undefined);
    t.same(verification(on), { policy: "NeverVerifyPreloadedImages", allowlist: [] });
    const inFile = (text: string) => `--config=${fileWith(t, `authorization: {mode: AlwaysAllow}\n${text}\n`)}`;
    const policy = "imagePullCredentialsVerificationPolicy";
    t.throws(() => verification(inFile(`${policy}: NeverVerify`)), /needs feature gate SvcletEnsureSecretPulledImages/);
    const list = "preloadedImagesVerificationAllowlist: ['r.test/a*']";
    t.throws(() => verification(on, inFile(list)), /can't set `preloadedImagesVerificationAllowlist` if/);
    const both = `${policy}: NeverVerifyAllowlistedImages\n${list}`;
    t.throws(() => verification(on, inFile(both)), /invalid image pattern in .*: not a valid wildcard pattern/);
    for (const isOn of [true, false]) {
      await using agent = await createTestAgent("flag", {
        "feature-gates": `SvcletEnsureSecretPulledImages=${isOn}`,
      });
      await agent.start();
      const created = existsSync(join(agent.directory, "root", "image_manager", "pulled"));
      t.equal(created, isOn);
    }
  },
  GracefulNodeShutdown: async (t) => {
    const file = `--config=${fileWith(t, "authorization: {mode: AlwaysAllow}\nshutdownGracePeriod: 30s\n")}`;
    t.match(configOf(file).shutdown, { groups: [{ graceSeconds: 30 }, {}] });
    const off = "--feature-gates=GracefulNodeShutdown=false";
    t.throws(() => configOf(file, off), /shutdownGracePeriod: needs feature gate GracefulNodeShutdown/);
  },
  GracefulNodeShutdownBasedOnPodPriority: async (t) => {
    const recordsTimes = (...argv: readonly string[]) => configOf(...argv).shutdown?.recordsTimes;
    const file = `--config=${fileWith(t, "authorization: {mode: AlwaysAllow}\nshutdownGracePeriod: 30s\n")}`;
    t.equal(recordsTimes(file), true);
    t.equal(recordsTimes(file, "--feature-gates=GracefulNodeShutdownBasedOnPodPriority=false"), false);
  },
  SvcletCrashLoopBackOffMax: async (t) => {
    const file = fileWith(t, "crashLoopBackOff: {maxContainerRestartPeriod: 7s}\n");
    const gate = "--feature-gates=SvcletCrashLoopBackOffMax=true";
    t.match(configOf(`--config=${file}`, gate).pods.restartDelays, { initialMs: 7000, maxMs: 7000 });
    const needed = /crashLoopBackOff.maxContainerRestartPeriod: needs feature gate SvcletCrashLoopBackOffMax/;
    t.throws(() => configOf(`--config=${file}`), needed);
  },
  SvcletTracing: async (t) => {
    const file = `--config=${fileWith(t, "authorization: {mode: AlwaysAllow}\ntracing: {endpoint: 'collector:4317'}\n")}`;
    t.match(configOf(file).tracing, { endpoint: "collector:4317" });
    t.throws(() => configOf(file, "--feature-gates=SvcletTracing=false"), {
      message: /tracing should not be configured if SvcletTracing feature flag is disabled/,
    });
  },
  SvcletServiceAccountTokenForCredentialProviders: async (t) => {
    const flags = ["--image-credential-provider-config=/etc/c", "--image-credential-provider-bin-dir=/opt/p"];
    const tokens = (...more: string[]) => configOf(...flags, ...more).runtime.credentialProviders?.tokens;
    t.equal(tokens(), false);
    t.equal(tokens("--feature-gates=SvcletServiceAccountTokenForCredentialProviders=true"), true);
  },
};
