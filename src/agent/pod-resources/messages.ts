/** Messages of kubelet's pod resources API (`v1`). */
import { bigInt64, bigUint64, list, message, optional, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

const numaNode = message("v1.NUMANode", { id: optional(1, bigInt64) });
const topologyInfo = message("v1.TopologyInfo", { nodes: optional(1, list(numaNode)) });

const containerDevices = message("v1.ContainerDevices", {
  resourceName: optional(1, string),
  deviceIds: optional(2, list(string)),
  topology: optional(3, topologyInfo),
});
export type ContainerDevices = Infer<typeof containerDevices>;

const containerMemory = message("v1.ContainerMemory", {
  memoryType: optional(1, string),
  size: optional(2, bigUint64),
  topology: optional(3, topologyInfo),
});
export type ContainerMemory = Infer<typeof containerMemory>;

const claimResource = message("v1.ClaimResource", {
  cdiDevices: optional(1, list(message("v1.CDIDevice", { name: optional(1, string) }))),
  driverName: optional(2, string),
  poolName: optional(3, string),
  deviceName: optional(4, string),
});

const dynamicResource = message("v1.DynamicResource", {
  claimName: optional(2, string),
  claimNamespace: optional(3, string),
  claimResources: optional(4, list(claimResource)),
});
export type DynamicResource = Infer<typeof dynamicResource>;

const containerResources = message("v1.ContainerResources", {
  name: optional(1, string),
  devices: optional(2, list(containerDevices)),
  cpuIds: optional(3, list(bigInt64)),
  memory: optional(4, list(containerMemory)),
  dynamicResources: optional(5, list(dynamicResource)),
});
export type ContainerResources = Infer<typeof containerResources>;

const podResources = message("v1.PodResources", {
  name: optional(1, string),
  namespace: optional(2, string),
  containers: optional(3, list(containerResources)),
});
export type PodResources = Infer<typeof podResources>;

const getRequest = message("v1.GetPodResourcesRequest", {
  podName: optional(1, string),
  podNamespace: optional(2, string),
});
export type GetPodResourcesRequest = Infer<typeof getRequest>;

const allocatableResponse = message("v1.AllocatableResourcesResponse", {
  devices: optional(1, list(containerDevices)),
  cpuIds: optional(2, list(bigInt64)),
  memory: optional(3, list(containerMemory)),
});
export type AllocatableResources = Infer<typeof allocatableResponse>;

export const podResourcesLister = {
  list: {
    path: "/v1.PodResourcesLister/List",
    request: message("v1.ListPodResourcesRequest", {}),
    response: message("v1.ListPodResourcesResponse", { podResources: optional(1, list(podResources)) }),
  },
  getAllocatableResources: {
    path: "/v1.PodResourcesLister/GetAllocatableResources",
    request: message("v1.AllocatableResourcesRequest", {}),
    response: allocatableResponse,
  },
  get: {
    path: "/v1.PodResourcesLister/Get",
    request: getRequest,
    response: message("v1.GetPodResourcesResponse", { podResources: optional(1, podResources) }),
  },
} as const;
