/** `KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`, and the arguments of plugins. */
import { nodeAffinity, topologySpreadConstraint } from "../../api/core/pod-spec/affinity.ts";
import {
  boolean,
  documentedEnum,
  duration,
  float,
  int32,
  int64,
  list,
  object,
  optional,
  pointer,
  rawExtension,
  string,
} from "../../schema/define.ts";
import type { ObjectSchema } from "../../schema/schema.ts";

const typeMeta = { kind: optional(1, string), apiVersion: optional(2, string) };

const plugin = object("scheduler.Plugin", { name: optional(1, string), weight: pointer(2, int32) });

const pluginSet = object("scheduler.PluginSet", {
  enabled: optional(1, list(plugin)),
  disabled: optional(2, list(plugin)),
});

const plugins = object("scheduler.Plugins", {
  preEnqueue: optional(1, pluginSet),
  queueSort: optional(2, pluginSet),
  preFilter: optional(3, pluginSet),
  filter: optional(4, pluginSet),
  postFilter: optional(5, pluginSet),
  preScore: optional(6, pluginSet),
  score: optional(7, pluginSet),
  reserve: optional(8, pluginSet),
  permit: optional(9, pluginSet),
  preBind: optional(10, pluginSet),
  bind: optional(11, pluginSet),
  postBind: optional(12, pluginSet),
  multiPoint: optional(13, pluginSet),
});

const pluginConfig = object("scheduler.PluginConfig", {
  name: optional(1, string),
  args: optional(2, rawExtension),
});

const profile = object("scheduler.KubeSchedulerProfile", {
  schedulerName: pointer(1, string),
  percentageOfNodesToScore: pointer(2, int32),
  plugins: pointer(3, plugins),
  pluginConfig: optional(4, list(pluginConfig)),
});

const extenderTls = object("scheduler.ExtenderTLSConfig", {
  insecure: optional(1, boolean),
  serverName: optional(2, string),
  certFile: optional(3, string),
  keyFile: optional(4, string),
  caFile: optional(5, string),
  certData: optional(6, string),
  keyData: optional(7, string),
  caData: optional(8, string),
});

const extender = object("scheduler.Extender", {
  urlPrefix: optional(1, string),
  filterVerb: optional(2, string),
  preemptVerb: optional(3, string),
  prioritizeVerb: optional(4, string),
  weight: optional(5, int64),
  bindVerb: optional(6, string),
  enableHTTPS: optional(7, boolean),
  tlsConfig: pointer(8, extenderTls),
  httpTimeout: optional(9, duration),
  nodeCacheCapable: optional(10, boolean),
  managedResources: optional(
    11,
    list(
      object("scheduler.ExtenderManagedResource", {
        name: optional(1, string),
        ignoredByScheduler: optional(2, boolean),
      }),
    ),
  ),
  ignorable: optional(12, boolean),
});

const leaderElection = object("scheduler.LeaderElectionConfiguration", {
  leaderElect: pointer(1, boolean),
  leaseDuration: optional(2, duration),
  renewDeadline: optional(3, duration),
  retryPeriod: optional(4, duration),
  resourceLock: optional(5, string),
  resourceName: optional(6, string),
  resourceNamespace: optional(7, string),
});

const clientConnection = object("scheduler.ClientConnectionConfiguration", {
  kubeconfig: optional(1, string),
  acceptContentTypes: optional(2, string),
  contentType: optional(3, string),
  qps: optional(4, float),
  burst: optional(5, int32),
});

export const kubeSchedulerConfiguration = object("scheduler.KubeSchedulerConfiguration", {
  ...typeMeta,
  parallelism: pointer(3, int32),
  leaderElection: optional(4, leaderElection),
  clientConnection: optional(5, clientConnection),
  enableProfiling: pointer(6, boolean),
  enableContentionProfiling: pointer(7, boolean),
  percentageOfNodesToScore: pointer(8, int32),
  podInitialBackoffSeconds: pointer(9, int64),
  podMaxBackoffSeconds: pointer(10, int64),
  profiles: optional(11, list(profile)),
  extenders: optional(12, list(extender)),
  delayCacheUntilActive: optional(13, boolean),
});

const scoredResource = object("scheduler.ResourceSpec", { name: optional(1, string), weight: optional(2, int64) });

const shapePoint = object("scheduler.UtilizationShapePoint", {
  utilization: optional(1, int32),
  score: optional(2, int32),
});

const scoringStrategy = object("scheduler.ScoringStrategy", {
  type: optional(1, documentedEnum("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")),
  resources: optional(2, list(scoredResource)),
  requestedToCapacityRatio: pointer(
    3,
    object("scheduler.RequestedToCapacityRatioParam", { shape: optional(1, list(shapePoint)) }),
  ),
});

/** The schemas of `pluginConfig[].args` by plugin. */
export const pluginArgs: Readonly<Record<string, ObjectSchema>> = {
  DefaultPreemption: object("scheduler.DefaultPreemptionArgs", {
    ...typeMeta,
    minCandidateNodesPercentage: pointer(3, int32),
    minCandidateNodesAbsolute: pointer(4, int32),
  }),
  InterPodAffinity: object("scheduler.InterPodAffinityArgs", {
    ...typeMeta,
    hardPodAffinityWeight: pointer(3, int32),
    ignorePreferredTermsOfExistingPods: optional(4, boolean),
  }),
  NodeAffinity: object("scheduler.NodeAffinityArgs", { ...typeMeta, addedAffinity: pointer(3, nodeAffinity) }),
  NodeResourcesBalancedAllocation: object("scheduler.NodeResourcesBalancedAllocationArgs", {
    ...typeMeta,
    resources: optional(3, list(scoredResource)),
  }),
  NodeResourcesFit: object("scheduler.NodeResourcesFitArgs", {
    ...typeMeta,
    ignoredResources: optional(3, list(string)),
    ignoredResourceGroups: optional(4, list(string)),
    scoringStrategy: pointer(5, scoringStrategy),
  }),
  PodTopologySpread: object("scheduler.PodTopologySpreadArgs", {
    ...typeMeta,
    defaultConstraints: optional(3, list(topologySpreadConstraint)),
    defaultingType: optional(4, documentedEnum("System", "List")),
  }),
  VolumeBinding: object("scheduler.VolumeBindingArgs", {
    ...typeMeta,
    bindTimeoutSeconds: pointer(3, int64),
    shape: optional(4, list(shapePoint)),
  }),
};
