import {
  boolean,
  documentedEnum,
  inline,
  int32,
  list,
  map,
  named,
  object,
  oneOf,
  optional,
  pointer,
  required,
  requiredPointer,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { nodeSelector } from "../node/selector.ts";
import { objectReference, secretReference } from "../references/object-reference.ts";
import { resourceList } from "../resources/schema.ts";
import {
  awsElasticBlockStoreVolumeSource,
  azureDiskVolumeSource,
  fcVolumeSource,
  flockerVolumeSource,
  gcePersistentDiskVolumeSource,
  hostPathVolumeSource,
  nfsVolumeSource,
  photonPersistentDiskVolumeSource,
  portworxVolumeSource,
  quobyteVolumeSource,
  vsphereVirtualDiskVolumeSource,
} from "../volume/schema.ts";

export const glusterfsPersistentVolumeSource = object("core/v1.GlusterfsPersistentVolumeSource", {
  endpoints: required(1, string),
  path: required(2, string),
  readOnly: optional(3, boolean),
  endpointsNamespace: pointer(4, string),
});
export type GlusterfsPersistentVolumeSource = Infer<typeof glusterfsPersistentVolumeSource>;

export const rbdPersistentVolumeSource = object("core/v1.RBDPersistentVolumeSource", {
  monitors: required(1, list(string)),
  image: required(2, string),
  fsType: optional(3, string),
  pool: optional(4, string, { default: "rbd" }),
  user: optional(5, string, { default: "admin" }),
  keyring: optional(6, string, { default: "/etc/ceph/keyring" }),
  secretRef: pointer(7, secretReference),
  readOnly: optional(8, boolean),
});
export type RBDPersistentVolumeSource = Infer<typeof rbdPersistentVolumeSource>;

export const iscsiPersistentVolumeSource = object("core/v1.ISCSIPersistentVolumeSource", {
  targetPortal: required(1, string),
  iqn: required(2, string),
  lun: required(3, int32),
  iscsiInterface: optional(4, string, { default: "default" }),
  fsType: optional(5, string),
  readOnly: optional(6, boolean),
  portals: optional(7, list(string)),
  chapAuthDiscovery: optional(8, boolean),
  chapAuthSession: optional(11, boolean),
  secretRef: pointer(10, secretReference),
  initiatorName: pointer(12, string),
});
export type ISCSIPersistentVolumeSource = Infer<typeof iscsiPersistentVolumeSource>;

export const cinderPersistentVolumeSource = object("core/v1.CinderPersistentVolumeSource", {
  volumeID: required(1, string),
  fsType: optional(2, string),
  readOnly: optional(3, boolean),
  secretRef: pointer(4, secretReference),
});
export type CinderPersistentVolumeSource = Infer<typeof cinderPersistentVolumeSource>;

export const cephFSPersistentVolumeSource = object("core/v1.CephFSPersistentVolumeSource", {
  monitors: required(1, list(string)),
  path: optional(2, string),
  user: optional(3, string),
  secretFile: optional(4, string),
  secretRef: pointer(5, secretReference),
  readOnly: optional(6, boolean),
});
export type CephFSPersistentVolumeSource = Infer<typeof cephFSPersistentVolumeSource>;

export const flexPersistentVolumeSource = object("core/v1.FlexPersistentVolumeSource", {
  driver: required(1, string),
  fsType: optional(2, string),
  secretRef: pointer(3, secretReference),
  readOnly: optional(4, boolean),
  options: optional(5, map(string)),
});
export type FlexPersistentVolumeSource = Infer<typeof flexPersistentVolumeSource>;

export const azureFilePersistentVolumeSource = object("core/v1.AzureFilePersistentVolumeSource", {
  secretName: required(1, string),
  shareName: required(2, string),
  readOnly: optional(3, boolean),
  secretNamespace: pointer(4, string, { emitEmpty: true }),
});
export type AzureFilePersistentVolumeSource = Infer<typeof azureFilePersistentVolumeSource>;

export const scaleIOPersistentVolumeSource = object("core/v1.ScaleIOPersistentVolumeSource", {
  gateway: required(1, string),
  system: required(2, string),
  secretRef: requiredPointer(3, secretReference),
  sslEnabled: optional(4, boolean),
  protectionDomain: optional(5, string),
  storagePool: optional(6, string),
  storageMode: optional(7, string, { default: "ThinProvisioned" }),
  volumeName: optional(8, string),
  fsType: optional(9, string, { default: "xfs" }),
  readOnly: optional(10, boolean),
});
export type ScaleIOPersistentVolumeSource = Infer<typeof scaleIOPersistentVolumeSource>;

export const localVolumeSource = object("core/v1.LocalVolumeSource", {
  path: required(1, string),
  fsType: pointer(2, string),
});
export type LocalVolumeSource = Infer<typeof localVolumeSource>;

export const storageOSPersistentVolumeSource = object("core/v1.StorageOSPersistentVolumeSource", {
  volumeName: optional(1, string),
  volumeNamespace: optional(2, string),
  fsType: optional(3, string),
  readOnly: optional(4, boolean),
  secretRef: pointer(5, objectReference),
});
export type StorageOSPersistentVolumeSource = Infer<typeof storageOSPersistentVolumeSource>;

export const csiPersistentVolumeSource = object("core/v1.CSIPersistentVolumeSource", {
  driver: required(1, string),
  volumeHandle: required(2, string),
  readOnly: optional(3, boolean),
  fsType: optional(4, string),
  volumeAttributes: optional(5, map(string)),
  controllerPublishSecretRef: pointer(6, secretReference),
  nodeStageSecretRef: pointer(7, secretReference),
  nodePublishSecretRef: pointer(8, secretReference),
  controllerExpandSecretRef: pointer(9, secretReference),
  nodeExpandSecretRef: pointer(10, secretReference),
});
export type CSIPersistentVolumeSource = Infer<typeof csiPersistentVolumeSource>;

export const persistentVolumeSource = object("core/v1.PersistentVolumeSource", {
  gcePersistentDisk: pointer(1, gcePersistentDiskVolumeSource),
  awsElasticBlockStore: pointer(2, awsElasticBlockStoreVolumeSource),
  hostPath: pointer(3, hostPathVolumeSource),
  glusterfs: pointer(4, glusterfsPersistentVolumeSource),
  nfs: pointer(5, nfsVolumeSource),
  rbd: pointer(6, rbdPersistentVolumeSource),
  iscsi: pointer(7, iscsiPersistentVolumeSource),
  cinder: pointer(8, cinderPersistentVolumeSource),
  cephfs: pointer(9, cephFSPersistentVolumeSource),
  fc: pointer(10, fcVolumeSource),
  flocker: pointer(11, flockerVolumeSource),
  flexVolume: pointer(12, flexPersistentVolumeSource),
  azureFile: pointer(13, azureFilePersistentVolumeSource),
  vsphereVolume: pointer(14, vsphereVirtualDiskVolumeSource),
  quobyte: pointer(15, quobyteVolumeSource),
  azureDisk: pointer(16, azureDiskVolumeSource),
  photonPersistentDisk: pointer(17, photonPersistentDiskVolumeSource),
  portworxVolume: pointer(18, portworxVolumeSource),
  scaleIO: pointer(19, scaleIOPersistentVolumeSource),
  local: pointer(20, localVolumeSource),
  storageos: pointer(21, storageOSPersistentVolumeSource),
  csi: pointer(22, csiPersistentVolumeSource),
});
export type PersistentVolumeSource = Infer<typeof persistentVolumeSource>;

export const volumeNodeAffinity = object("core/v1.VolumeNodeAffinity", {
  required: pointer(1, nodeSelector),
});
export type VolumeNodeAffinity = Infer<typeof volumeNodeAffinity>;

export const persistentVolumeSpec = object("core/v1.PersistentVolumeSpec", {
  capacity: optional(1, resourceList),
  persistentVolumeSource: inline(2, persistentVolumeSource),
  accessModes: optional(
    3,
    list(
      named(
        "v1.PersistentVolumeAccessMode",
        documentedEnum("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"),
      ),
    ),
  ),
  claimRef: pointer(4, objectReference, { granular: true }),
  persistentVolumeReclaimPolicy: optional(
    5,
    named("v1.PersistentVolumeReclaimPolicy", oneOf("Recycle", "Delete", "Retain")),
  ),
  storageClassName: optional(6, string),
  mountOptions: optional(7, list(string)),
  volumeMode: pointer(8, named("v1.PersistentVolumeMode", documentedEnum("Block", "Filesystem"))),
  nodeAffinity: pointer(9, volumeNodeAffinity),
  volumeAttributesClassName: pointer(10, string, { featureGate: "VolumeAttributesClass" }),
});
export type PersistentVolumeSpec = Infer<typeof persistentVolumeSpec>;

export const persistentVolumeStatus = object("core/v1.PersistentVolumeStatus", {
  phase: optional(
    1,
    named("v1.PersistentVolumePhase", documentedEnum("Pending", "Available", "Bound", "Released", "Failed")),
  ),
  message: optional(2, string),
  reason: optional(3, string),
  lastPhaseTransitionTime: pointer(4, time),
});
export type PersistentVolumeStatus = Infer<typeof persistentVolumeStatus>;

export const persistentVolume = object("core/v1.PersistentVolume", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, persistentVolumeSpec),
  status: optional(3, persistentVolumeStatus),
});
export type PersistentVolume = Infer<typeof persistentVolume>;
