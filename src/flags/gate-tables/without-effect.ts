/** Gates both of whose values mean the same for this project. Programs accept them, and warn that nothing changes. */

const namesByReason: Readonly<Record<string, readonly string[]>> = {
  "it selects how a Go program runs requests": ["APIServingWithRoutine", "ConcurrentWatchObjectDecode"],
  "it selects how Go clients keep their caches": ["InOrderInformers", "InformerResourceVersion"],
  "both values give the same responses": [
    "ListFromCacheSnapshot",
    "StorageNamespaceIndex",
    "StreamingCollectionEncodingToJSON",
    "StreamingCollectionEncodingToProtobuf",
  ],
  "validation that is declared and validation that is not have the same results": [
    "DeclarativeValidation",
    "DeclarativeValidationTakeover",
  ],
  "the agent always takes lifecycle events from the runtime": ["EventedPLEG"],
  "sidecar containers have one implementation": ["LegacySidecarContainers"],
  "the store is not etcd": ["SeparateCacheWatchRPC"],
  "the agent always ignores what a user namespace forbids": ["SvcletInUserNamespace"],
  "nodes run Linux": [
    "WinDSR",
    "WinOverlay",
    "WindowsCPUAndMemoryAffinity",
    "WindowsGracefulNodeShutdown",
    "WindowsHostNetwork",
  ],
  "Kubernetes 1.33 has no alpha options of the topology manager": ["TopologyManagerPolicyAlphaOptions"],
  "it belongs to cloud controller managers": ["CloudControllerManagerWebhook"],
  "volumes of Portworx are those of its CSI driver": ["InTreePluginPortworxUnregister"],
  "Kubernetes 1.33 has no such gate; CustomCPUCFSQuotaPeriod has its effect": ["CPUCFSQuotaPeriod"],
  "Kubernetes 1.33 has no such gate; RuntimeClassInImageCriApi has its effect": ["RuntimeClassInImageCriAPI"],
  "Kubernetes 1.33 has no such gate; StorageCapacityScoring has its effect": ["VolumeCapacityPriority"],
};

/** The reason by the gate's name. */
export const gatesWithoutEffect: ReadonlyMap<string, string> = new Map(
  Object.entries(namesByReason).flatMap(([reason, names]) => names.map((name) => [name, reason] as const)),
);
