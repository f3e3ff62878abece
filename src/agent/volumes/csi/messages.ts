/** The node service of the Container Storage Interface (`csi.v1`), as far as the agent calls it. */
import { bigInt64, boolean, enumeration, list, map, message, optional, string } from "../../../schema/define.ts";
import type { Infer, ObjectSchema } from "../../../schema/schema.ts";

const accessModes = enumeration("csi.v1.VolumeCapability.AccessMode.Mode", {
  UNKNOWN: 0,
  SINGLE_NODE_WRITER: 1,
  SINGLE_NODE_READER_ONLY: 2,
  MULTI_NODE_READER_ONLY: 3,
  MULTI_NODE_SINGLE_WRITER: 4,
  MULTI_NODE_MULTI_WRITER: 5,
  SINGLE_NODE_SINGLE_WRITER: 6,
  SINGLE_NODE_MULTI_WRITER: 7,
});

const rpcType = enumeration("csi.v1.NodeServiceCapability.RPC.Type", {
  UNKNOWN: 0,
  STAGE_UNSTAGE_VOLUME: 1,
  GET_VOLUME_STATS: 2,
  EXPAND_VOLUME: 3,
  VOLUME_CONDITION: 4,
  SINGLE_NODE_MULTI_WRITER: 5,
  VOLUME_MOUNT_GROUP: 6,
});

const usageUnit = enumeration("csi.v1.VolumeUsage.Unit", { UNKNOWN: 0, BYTES: 1, INODES: 2 });

const blockVolume = message("csi.v1.VolumeCapability.BlockVolume", {});

const mountVolume = message("csi.v1.VolumeCapability.MountVolume", {
  fsType: optional(1, string),
  mountFlags: optional(2, list(string)),
  volumeMountGroup: optional(3, string),
});

const accessMode = message("csi.v1.VolumeCapability.AccessMode", { mode: optional(1, accessModes) });

/** Either `block` or `mount`. */
export const volumeCapability = message("csi.v1.VolumeCapability", {
  block: optional(1, blockVolume),
  mount: optional(2, mountVolume),
  accessMode: optional(3, accessMode),
});
export type VolumeCapability = Infer<typeof volumeCapability>;

const stageRequest = message("csi.v1.NodeStageVolumeRequest", {
  volumeId: optional(1, string),
  publishContext: optional(2, map(string)),
  stagingTargetPath: optional(3, string),
  volumeCapability: optional(4, volumeCapability),
  secrets: optional(5, map(string)),
  volumeContext: optional(6, map(string)),
});

const unstageRequest = message("csi.v1.NodeUnstageVolumeRequest", {
  volumeId: optional(1, string),
  stagingTargetPath: optional(2, string),
});

const publishRequest = message("csi.v1.NodePublishVolumeRequest", {
  volumeId: optional(1, string),
  publishContext: optional(2, map(string)),
  stagingTargetPath: optional(3, string),
  targetPath: optional(4, string),
  volumeCapability: optional(5, volumeCapability),
  readonly: optional(6, boolean),
  secrets: optional(7, map(string)),
  volumeContext: optional(8, map(string)),
});

const unpublishRequest = message("csi.v1.NodeUnpublishVolumeRequest", {
  volumeId: optional(1, string),
  targetPath: optional(2, string),
});

const statsRequest = message("csi.v1.NodeGetVolumeStatsRequest", {
  volumeId: optional(1, string),
  volumePath: optional(2, string),
  stagingTargetPath: optional(3, string),
});

const volumeUsage = message("csi.v1.VolumeUsage", {
  available: optional(1, bigInt64),
  total: optional(2, bigInt64),
  used: optional(3, bigInt64),
  unit: optional(4, usageUnit),
});

const volumeCondition = message("csi.v1.VolumeCondition", {
  abnormal: optional(1, boolean),
  message: optional(2, string),
});

const statsResponse = message("csi.v1.NodeGetVolumeStatsResponse", {
  usage: optional(1, list(volumeUsage)),
  volumeCondition: optional(2, volumeCondition),
});
export type VolumeStats = Infer<typeof statsResponse>;

const capacityRange = message("csi.v1.CapacityRange", {
  requiredBytes: optional(1, bigInt64),
  limitBytes: optional(2, bigInt64),
});

const expandRequest = message("csi.v1.NodeExpandVolumeRequest", {
  volumeId: optional(1, string),
  volumePath: optional(2, string),
  capacityRange: optional(3, capacityRange),
  stagingTargetPath: optional(4, string),
  volumeCapability: optional(5, volumeCapability),
  secrets: optional(6, map(string)),
});

const expandResponse = message("csi.v1.NodeExpandVolumeResponse", { capacityBytes: optional(1, bigInt64) });

const capability = message("csi.v1.NodeServiceCapability", {
  rpc: optional(1, message("csi.v1.NodeServiceCapability.RPC", { type: optional(1, rpcType) })),
});

const capabilitiesResponse = message("csi.v1.NodeGetCapabilitiesResponse", {
  capabilities: optional(1, list(capability)),
});

const topology = message("csi.v1.Topology", { segments: optional(1, map(string)) });

const infoResponse = message("csi.v1.NodeGetInfoResponse", {
  nodeId: optional(1, string),
  maxVolumesPerNode: optional(2, bigInt64),
  accessibleTopology: optional(3, topology),
});
export type NodeInfo = Infer<typeof infoResponse>;

function empty(name: string): ObjectSchema {
  return message(`csi.v1.${name}`, {});
}

export const nodeService = {
  stageVolume: {
    path: "/csi.v1.Node/NodeStageVolume",
    request: stageRequest,
    response: empty("NodeStageVolumeResponse"),
  },
  unstageVolume: {
    path: "/csi.v1.Node/NodeUnstageVolume",
    request: unstageRequest,
    response: empty("NodeUnstageVolumeResponse"),
  },
  publishVolume: {
    path: "/csi.v1.Node/NodePublishVolume",
    request: publishRequest,
    response: empty("NodePublishVolumeResponse"),
  },
  unpublishVolume: {
    path: "/csi.v1.Node/NodeUnpublishVolume",
    request: unpublishRequest,
    response: empty("NodeUnpublishVolumeResponse"),
  },
  getVolumeStats: { path: "/csi.v1.Node/NodeGetVolumeStats", request: statsRequest, response: statsResponse },
  expandVolume: { path: "/csi.v1.Node/NodeExpandVolume", request: expandRequest, response: expandResponse },
  getCapabilities: {
    path: "/csi.v1.Node/NodeGetCapabilities",
    request: message("csi.v1.NodeGetCapabilitiesRequest", {}),
    response: capabilitiesResponse,
  },
  getInfo: {
    path: "/csi.v1.Node/NodeGetInfo",
    request: message("csi.v1.NodeGetInfoRequest", {}),
    response: infoResponse,
  },
} as const;
