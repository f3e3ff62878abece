/**
 * The fields of the agent's configuration file. Defaults of fields with a flag are in the flag's row, those of the
 * others are here. A field without `pointer` counts as absent when it has its zero value, as in Kubernetes.
 */
import {
  boolean,
  double,
  duration,
  int32,
  int64,
  list,
  map,
  object,
  oneOf,
  optional,
  pointer,
  quantity,
  required,
  string,
  uint32,
} from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

const taint = object("core/v1.Taint", {
  key: required(0, string),
  value: optional(0, string),
  effect: required(0, string),
  timeAdded: pointer(0, string),
});

const memoryReservation = object("svclet.config.svc.io/v1beta1.MemoryReservation", {
  numaNode: required(0, int32),
  limits: required(0, map(quantity)),
});

const shutdownGracePeriodByPodPriority = object("svclet.config.svc.io/v1beta1.ShutdownGracePeriodByPodPriority", {
  priority: required(0, int32),
  shutdownGracePeriodSeconds: required(0, int64),
});

const vmoduleItem = object("logsapi/v1.VModuleItem", {
  filePattern: required(0, string),
  verbosity: required(0, uint32),
});

const authentication = object("svclet.config.svc.io/v1beta1.SvcletAuthentication", {
  x509: optional(
    0,
    object("svclet.config.svc.io/v1beta1.SvcletAuthenticationX509", {
      clientCAFile: optional(0, string),
    }),
  ),
  webhook: optional(
    0,
    object("svclet.config.svc.io/v1beta1.SvcletAuthenticationWebhook", {
      enabled: pointer(0, boolean),
      cacheTTL: optional(0, duration),
    }),
  ),
  anonymous: optional(
    0,
    object("svclet.config.svc.io/v1beta1.SvcletAuthenticationAnonymous", {
      enabled: pointer(0, boolean),
    }),
  ),
});

const authorization = object("svclet.config.svc.io/v1beta1.SvcletAuthorization", {
  mode: optional(0, string),
  webhook: optional(
    0,
    object("svclet.config.svc.io/v1beta1.SvcletAuthorizationWebhook", {
      cacheAuthorizedTTL: optional(0, duration),
      cacheUnauthorizedTTL: optional(0, duration),
    }),
  ),
});

const memorySwap = object("svclet.config.svc.io/v1beta1.MemorySwapConfiguration", {
  swapBehavior: optional(0, string, { featureGate: "NodeSwap" }),
});

const logging = object("svclet.config.svc.io/v1beta1.LoggingConfiguration", {
  format: optional(0, string),
  flushFrequency: optional(0, duration),
  verbosity: optional(0, uint32),
  vmodule: optional(0, list(vmoduleItem)),
  options: optional(
    0,
    object("svclet.config.svc.io/v1beta1.LoggingConfigurationOptions", {
      text: optional(
        0,
        object("svclet.config.svc.io/v1beta1.LoggingConfigurationOptionsText", {
          splitStream: optional(0, boolean),
          infoBufferSize: optional(0, quantity),
        }),
      ),
      json: optional(
        0,
        object("svclet.config.svc.io/v1beta1.LoggingConfigurationOptionsJson", {
          splitStream: optional(0, boolean),
          infoBufferSize: optional(0, quantity),
        }),
      ),
    }),
  ),
});

const crashLoopBackOff = object("svclet.config.svc.io/v1beta1.CrashLoopBackOffConfig", {
  maxContainerRestartPeriod: pointer(0, duration, { featureGate: "SvcletCrashLoopBackOffMax" }),
});

const tracing = object("svclet.config.svc.io/v1beta1.TracingConfiguration", {
  endpoint: pointer(0, string),
  samplingRatePerMillion: pointer(0, int32),
});

const userNamespaces = object("svclet.config.svc.io/v1beta1.UserNamespaces", {
  idsPerPod: pointer(0, int64, { default: 65536, featureGate: "UserNamespacesSupport" }),
});

export const svcletConfiguration = object("svclet.config.svc.io/v1beta1.SvcletConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  enableServer: pointer(0, boolean),
  staticPodPath: optional(0, string),
  podLogsDir: optional(0, string, { default: "/var/log/pods" }),
  syncFrequency: optional(0, duration),
  fileCheckFrequency: optional(0, duration),
  httpCheckFrequency: optional(0, duration),
  staticPodURL: optional(0, string),
  staticPodURLHeader: optional(0, map(list(string))),
  address: optional(0, string),
  port: optional(0, int32),
  readOnlyPort: optional(0, int32),
  tlsCertFile: optional(0, string),
  tlsPrivateKeyFile: optional(0, string),
  tlsCipherSuites: optional(0, list(string)),
  tlsMinVersion: optional(0, string),
  rotateCertificates: optional(0, boolean),
  serverTLSBootstrap: optional(0, boolean),
  authentication: optional(0, authentication),
  authorization: optional(0, authorization),
  registryPullQPS: pointer(0, int32),
  registryBurst: optional(0, int32),
  imagePullCredentialsVerificationPolicy: optional(
    0,
    oneOf("NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"),
    { featureGate: "SvcletEnsureSecretPulledImages" },
  ),
  preloadedImagesVerificationAllowlist: optional(0, list(string), { featureGate: "SvcletEnsureSecretPulledImages" }),
  eventRecordQPS: pointer(0, int32),
  eventBurst: optional(0, int32),
  enableDebuggingHandlers: pointer(0, boolean),
  enableContentionProfiling: optional(0, boolean),
  healthzPort: pointer(0, int32),
  healthzBindAddress: optional(0, string),
  oomScoreAdj: pointer(0, int32),
  clusterDomain: optional(0, string),
  clusterDNS: optional(0, list(string)),
  streamingConnectionIdleTimeout: optional(0, duration),
  nodeStatusUpdateFrequency: optional(0, duration),
  nodeStatusReportFrequency: optional(0, duration, { default: "5m0s" }),
  nodeLeaseDurationSeconds: optional(0, int32, { default: 40 }),
  imageMinimumGCAge: optional(0, duration),
  imageMaximumGCAge: optional(0, duration, { default: "0s", featureGate: "ImageMaximumGCAge" }),
  imageGCHighThresholdPercent: pointer(0, int32),
  imageGCLowThresholdPercent: pointer(0, int32),
  volumeStatsAggPeriod: optional(0, duration),
  svcletCgroups: optional(0, string),
  systemCgroups: optional(0, string),
  cgroupRoot: optional(0, string),
  cgroupsPerQOS: pointer(0, boolean),
  cgroupDriver: optional(0, string),
  cpuManagerPolicy: optional(0, string),
  singleProcessOOMKill: pointer(0, boolean),
  cpuManagerPolicyOptions: optional(0, map(string)),
  cpuManagerReconcilePeriod: optional(0, duration),
  memoryManagerPolicy: optional(0, string),
  topologyManagerPolicy: optional(0, string),
  topologyManagerScope: optional(0, string),
  topologyManagerPolicyOptions: optional(0, map(string)),
  qosReserved: optional(0, map(string)),
  runtimeRequestTimeout: optional(0, duration),
  hairpinMode: optional(0, string),
  maxPods: optional(0, int32),
  podCIDR: optional(0, string),
  podPidsLimit: pointer(0, int64),
  resolvConf: pointer(0, string),
  runOnce: optional(0, boolean),
  cpuCFSQuota: pointer(0, boolean),
  cpuCFSQuotaPeriod: pointer(0, duration),
  nodeStatusMaxImages: pointer(0, int32),
  maxOpenFiles: optional(0, int64),
  contentType: optional(0, string),
  svcAPIQPS: pointer(0, int32),
  svcAPIBurst: optional(0, int32),
  serializeImagePulls: pointer(0, boolean),
  maxParallelImagePulls: pointer(0, int32),
  evictionHard: pointer(0, map(string)),
  evictionSoft: optional(0, map(string)),
  evictionSoftGracePeriod: optional(0, map(string)),
  evictionPressureTransitionPeriod: optional(0, duration),
  evictionMaxPodGracePeriod: optional(0, int32),
  evictionMinimumReclaim: optional(0, map(string)),
  mergeDefaultEvictionSettings: pointer(0, boolean, { default: false }),
  podsPerCore: optional(0, int32),
  enableControllerAttachDetach: pointer(0, boolean),
  protectKernelDefaults: optional(0, boolean),
  makeIPTablesUtilChains: pointer(0, boolean),
  iptablesMasqueradeBit: pointer(0, int32, { default: 14 }),
  iptablesDropBit: pointer(0, int32, { default: 15 }),
  featureGates: optional(0, map(boolean)),
  failSwapOn: pointer(0, boolean),
  memorySwap: optional(0, memorySwap),
  containerLogMaxSize: optional(0, string),
  containerLogMaxFiles: pointer(0, int32),
  containerLogMaxWorkers: pointer(0, int32, { default: 1 }),
  containerLogMonitorInterval: pointer(0, duration, { default: "10s" }),
  configMapAndSecretChangeDetectionStrategy: optional(0, oneOf("Get", "Cache", "Watch"), { default: "Watch" }),
  systemReserved: optional(0, map(string)),
  svcReserved: optional(0, map(string)),
  reservedSystemCPUs: optional(0, string),
  showHiddenMetricsForVersion: optional(0, string),
  systemReservedCgroup: optional(0, string),
  svcReservedCgroup: optional(0, string),
  enforceNodeAllocatable: pointer(0, list(string)),
  allowedUnsafeSysctls: optional(0, list(string)),
  volumePluginDir: optional(0, string),
  providerID: optional(0, string),
  kernelMemcgNotification: optional(0, boolean),
  logging: optional(0, logging),
  enableSystemLogHandler: pointer(0, boolean, { default: true }),
  enableSystemLogQuery: pointer(0, boolean, { default: false, featureGate: "NodeLogQuery" }),
  shutdownGracePeriod: optional(0, duration, { default: "0s", featureGate: "GracefulNodeShutdown" }),
  shutdownGracePeriodCriticalPods: optional(0, duration, { default: "0s", featureGate: "GracefulNodeShutdown" }),
  shutdownGracePeriodByPodPriority: optional(0, list(shutdownGracePeriodByPodPriority), {
    featureGate: "GracefulNodeShutdownBasedOnPodPriority",
  }),
  crashLoopBackOff: optional(0, crashLoopBackOff),
  reservedMemory: optional(0, list(memoryReservation)),
  enableProfilingHandler: pointer(0, boolean, { default: true }),
  enableDebugFlagsHandler: pointer(0, boolean, { default: true }),
  seccompDefault: pointer(0, boolean, { default: false }),
  memoryThrottlingFactor: pointer(0, double, { default: 0.9, featureGate: "MemoryQoS" }),
  registerWithTaints: optional(0, list(taint)),
  registerNode: pointer(0, boolean),
  tracing: optional(0, tracing),
  localStorageCapacityIsolation: pointer(0, boolean),
  containerRuntimeEndpoint: optional(0, string),
  imageServiceEndpoint: optional(0, string),
  failCgroupV1: pointer(0, boolean),
  userNamespaces: optional(0, userNamespaces),
});

/** A configuration with only the fields that are set. */
export type SvcletConfiguration = Infer<typeof svcletConfiguration>;

/** Fields without a flag that have a default in the schema. */
type DefaultedField =
  | "podLogsDir"
  | "nodeStatusReportFrequency"
  | "nodeLeaseDurationSeconds"
  | "containerLogMaxWorkers"
  | "containerLogMonitorInterval"
  | "configMapAndSecretChangeDetectionStrategy"
  | "enableDebugFlagsHandler"
  | "enableProfilingHandler"
  | "enableSystemLogHandler"
  | "enableSystemLogQuery"
  | "userNamespaces";

/** A configuration with defaults applied. */
export type DefaultedConfiguration = SvcletConfiguration & {
  readonly [F in DefaultedField]: NonNullable<SvcletConfiguration[F]>;
};
