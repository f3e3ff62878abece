import {
  boolean,
  documentedEnum,
  inline,
  int32,
  int64,
  list,
  map,
  named,
  object,
  optional,
  pointer,
  quantity,
  required,
  requiredPointer,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { objectFieldSelector, resourceFieldSelector } from "../references/field-selectors.ts";
import {
  localObjectReference,
  typedLocalObjectReference,
  typedObjectReference,
} from "../references/object-reference.ts";
import { volumeResourceRequirements } from "../resources/schema.ts";

export const hostPathVolumeSource = object("core/v1.HostPathVolumeSource", {
  path: required(1, string),
  type: pointer(
    2,
    named(
      "v1.HostPathType",
      documentedEnum(
        "",
        "DirectoryOrCreate",
        "Directory",
        "FileOrCreate",
        "File",
        "Socket",
        "CharDevice",
        "BlockDevice",
      ),
    ),
  ),
});
export type HostPathVolumeSource = Infer<typeof hostPathVolumeSource>;

export const emptyDirVolumeSource = object("core/v1.EmptyDirVolumeSource", {
  medium: optional(1, named("v1.StorageMedium", string)),
  sizeLimit: pointer(2, quantity),
});
export type EmptyDirVolumeSource = Infer<typeof emptyDirVolumeSource>;

export const gcePersistentDiskVolumeSource = object("core/v1.GCEPersistentDiskVolumeSource", {
  pdName: required(1, string),
  fsType: optional(2, string),
  partition: optional(3, int32),
  readOnly: optional(4, boolean),
});
export type GCEPersistentDiskVolumeSource = Infer<typeof gcePersistentDiskVolumeSource>;

export const awsElasticBlockStoreVolumeSource = object("core/v1.AWSElasticBlockStoreVolumeSource", {
  volumeID: required(1, string),
  fsType: optional(2, string),
  partition: optional(3, int32),
  readOnly: optional(4, boolean),
});
export type AWSElasticBlockStoreVolumeSource = Infer<typeof awsElasticBlockStoreVolumeSource>;

export const gitRepoVolumeSource = object("core/v1.GitRepoVolumeSource", {
  repository: required(1, string),
  revision: optional(2, string),
  directory: optional(3, string),
});
export type GitRepoVolumeSource = Infer<typeof gitRepoVolumeSource>;

export const keyToPath = object("core/v1.KeyToPath", {
  key: required(1, string),
  path: required(2, string),
  mode: pointer(3, int32),
});
export type KeyToPath = Infer<typeof keyToPath>;

export const secretVolumeSource = object("core/v1.SecretVolumeSource", {
  secretName: optional(1, string),
  items: optional(2, list(keyToPath)),
  defaultMode: pointer(3, int32),
  optional: pointer(4, boolean),
});
export type SecretVolumeSource = Infer<typeof secretVolumeSource>;

export const nfsVolumeSource = object("core/v1.NFSVolumeSource", {
  server: required(1, string),
  path: required(2, string),
  readOnly: optional(3, boolean),
});
export type NFSVolumeSource = Infer<typeof nfsVolumeSource>;

export const iscsiVolumeSource = object("core/v1.ISCSIVolumeSource", {
  targetPortal: required(1, string),
  iqn: required(2, string),
  lun: required(3, int32),
  iscsiInterface: optional(4, string, { default: "default" }),
  fsType: optional(5, string),
  readOnly: optional(6, boolean),
  portals: optional(7, list(string)),
  chapAuthDiscovery: optional(8, boolean),
  chapAuthSession: optional(11, boolean),
  secretRef: pointer(10, localObjectReference),
  initiatorName: pointer(12, string),
});
export type ISCSIVolumeSource = Infer<typeof iscsiVolumeSource>;

export const glusterfsVolumeSource = object("core/v1.GlusterfsVolumeSource", {
  endpoints: required(1, string),
  path: required(2, string),
  readOnly: optional(3, boolean),
});
export type GlusterfsVolumeSource = Infer<typeof glusterfsVolumeSource>;

export const persistentVolumeClaimVolumeSource = object("core/v1.PersistentVolumeClaimVolumeSource", {
  claimName: required(1, string),
  readOnly: optional(2, boolean),
});
export type PersistentVolumeClaimVolumeSource = Infer<typeof persistentVolumeClaimVolumeSource>;

export const rbdVolumeSource = object("core/v1.RBDVolumeSource", {
  monitors: required(1, list(string)),
  image: required(2, string),
  fsType: optional(3, string),
  pool: optional(4, string, { default: "rbd" }),
  user: optional(5, string, { default: "admin" }),
  keyring: optional(6, string, { default: "/etc/ceph/keyring" }),
  secretRef: pointer(7, localObjectReference),
  readOnly: optional(8, boolean),
});
export type RBDVolumeSource = Infer<typeof rbdVolumeSource>;

export const flexVolumeSource = object("core/v1.FlexVolumeSource", {
  driver: required(1, string),
  fsType: optional(2, string),
  secretRef: pointer(3, localObjectReference),
  readOnly: optional(4, boolean),
  options: optional(5, map(string)),
});
export type FlexVolumeSource = Infer<typeof flexVolumeSource>;

export const cinderVolumeSource = object("core/v1.CinderVolumeSource", {
  volumeID: required(1, string),
  fsType: optional(2, string),
  readOnly: optional(3, boolean),
  secretRef: pointer(4, localObjectReference),
});
export type CinderVolumeSource = Infer<typeof cinderVolumeSource>;

export const cephFSVolumeSource = object("core/v1.CephFSVolumeSource", {
  monitors: required(1, list(string)),
  path: optional(2, string),
  user: optional(3, string),
  secretFile: optional(4, string),
  secretRef: pointer(5, localObjectReference),
  readOnly: optional(6, boolean),
});
export type CephFSVolumeSource = Infer<typeof cephFSVolumeSource>;

export const flockerVolumeSource = object("core/v1.FlockerVolumeSource", {
  datasetName: optional(1, string),
  datasetUUID: optional(2, string),
});
export type FlockerVolumeSource = Infer<typeof flockerVolumeSource>;

export const downwardAPIVolumeFile = object("core/v1.DownwardAPIVolumeFile", {
  path: required(1, string),
  fieldRef: pointer(2, objectFieldSelector),
  resourceFieldRef: pointer(3, resourceFieldSelector),
  mode: pointer(4, int32),
});
export type DownwardAPIVolumeFile = Infer<typeof downwardAPIVolumeFile>;

export const downwardAPIVolumeSource = object("core/v1.DownwardAPIVolumeSource", {
  items: optional(1, list(downwardAPIVolumeFile)),
  defaultMode: pointer(2, int32),
});
export type DownwardAPIVolumeSource = Infer<typeof downwardAPIVolumeSource>;

export const fcVolumeSource = object("core/v1.FCVolumeSource", {
  targetWWNs: optional(1, list(string)),
  lun: pointer(2, int32),
  fsType: optional(3, string),
  readOnly: optional(4, boolean),
  wwids: optional(5, list(string)),
});
export type FCVolumeSource = Infer<typeof fcVolumeSource>;

export const azureFileVolumeSource = object("core/v1.AzureFileVolumeSource", {
  secretName: required(1, string),
  shareName: required(2, string),
  readOnly: optional(3, boolean),
});
export type AzureFileVolumeSource = Infer<typeof azureFileVolumeSource>;

export const configMapVolumeSource = object("core/v1.ConfigMapVolumeSource", {
  localObjectReference: inline(1, localObjectReference),
  items: optional(2, list(keyToPath)),
  defaultMode: pointer(3, int32),
  optional: pointer(4, boolean),
});
export type ConfigMapVolumeSource = Infer<typeof configMapVolumeSource>;

export const vsphereVirtualDiskVolumeSource = object("core/v1.VsphereVirtualDiskVolumeSource", {
  volumePath: required(1, string),
  fsType: optional(2, string),
  storagePolicyName: optional(3, string),
  storagePolicyID: optional(4, string),
});
export type VsphereVirtualDiskVolumeSource = Infer<typeof vsphereVirtualDiskVolumeSource>;

export const quobyteVolumeSource = object("core/v1.QuobyteVolumeSource", {
  registry: required(1, string),
  volume: required(2, string),
  readOnly: optional(3, boolean),
  user: optional(4, string),
  group: optional(5, string),
  tenant: optional(6, string),
});
export type QuobyteVolumeSource = Infer<typeof quobyteVolumeSource>;

export const azureDiskVolumeSource = object("core/v1.AzureDiskVolumeSource", {
  diskName: required(1, string),
  diskURI: required(2, string),
  cachingMode: pointer(3, named("v1.AzureDataDiskCachingMode", documentedEnum("None", "ReadOnly", "ReadWrite")), {
    default: "ReadWrite",
  }),
  fsType: pointer(4, string, { default: "ext4" }),
  readOnly: pointer(5, boolean, { default: false }),
  kind: pointer(6, named("v1.AzureDataDiskKind", documentedEnum("Shared", "Dedicated", "Managed")), {
    default: "Shared",
  }),
});
export type AzureDiskVolumeSource = Infer<typeof azureDiskVolumeSource>;

export const photonPersistentDiskVolumeSource = object("core/v1.PhotonPersistentDiskVolumeSource", {
  pdID: required(1, string),
  fsType: optional(2, string),
});
export type PhotonPersistentDiskVolumeSource = Infer<typeof photonPersistentDiskVolumeSource>;

export const secretProjection = object("core/v1.SecretProjection", {
  localObjectReference: inline(1, localObjectReference),
  items: optional(2, list(keyToPath)),
  optional: pointer(4, boolean),
});
export type SecretProjection = Infer<typeof secretProjection>;

export const downwardAPIProjection = object("core/v1.DownwardAPIProjection", {
  items: optional(1, list(downwardAPIVolumeFile)),
});
export type DownwardAPIProjection = Infer<typeof downwardAPIProjection>;

export const configMapProjection = object("core/v1.ConfigMapProjection", {
  localObjectReference: inline(1, localObjectReference),
  items: optional(2, list(keyToPath)),
  optional: pointer(4, boolean),
});
export type ConfigMapProjection = Infer<typeof configMapProjection>;

export const serviceAccountTokenProjection = object("core/v1.ServiceAccountTokenProjection", {
  audience: optional(1, string),
  expirationSeconds: pointer(2, int64),
  path: required(3, string),
});
export type ServiceAccountTokenProjection = Infer<typeof serviceAccountTokenProjection>;

export const clusterTrustBundleProjection = object("core/v1.ClusterTrustBundleProjection", {
  name: pointer(1, string),
  signerName: pointer(2, string),
  labelSelector: pointer(3, labelSelector),
  optional: pointer(5, boolean),
  path: required(4, string),
});
export type ClusterTrustBundleProjection = Infer<typeof clusterTrustBundleProjection>;

export const volumeProjection = object("core/v1.VolumeProjection", {
  secret: pointer(1, secretProjection),
  downwardAPI: pointer(2, downwardAPIProjection),
  configMap: pointer(3, configMapProjection),
  serviceAccountToken: pointer(4, serviceAccountTokenProjection),
  clusterTrustBundle: pointer(5, clusterTrustBundleProjection, {
    featureGate: "ClusterTrustBundleProjection",
  }),
});
export type VolumeProjection = Infer<typeof volumeProjection>;

export const projectedVolumeSource = object("core/v1.ProjectedVolumeSource", {
  sources: optional(1, list(volumeProjection), { emitEmpty: true }),
  defaultMode: pointer(2, int32),
});
export type ProjectedVolumeSource = Infer<typeof projectedVolumeSource>;

export const portworxVolumeSource = object("core/v1.PortworxVolumeSource", {
  volumeID: required(1, string),
  fsType: optional(2, string),
  readOnly: optional(3, boolean),
});
export type PortworxVolumeSource = Infer<typeof portworxVolumeSource>;

export const scaleIOVolumeSource = object("core/v1.ScaleIOVolumeSource", {
  gateway: required(1, string),
  system: required(2, string),
  secretRef: requiredPointer(3, localObjectReference),
  sslEnabled: optional(4, boolean),
  protectionDomain: optional(5, string),
  storagePool: optional(6, string),
  storageMode: optional(7, string, { default: "ThinProvisioned" }),
  volumeName: optional(8, string),
  fsType: optional(9, string, { default: "xfs" }),
  readOnly: optional(10, boolean),
});
export type ScaleIOVolumeSource = Infer<typeof scaleIOVolumeSource>;

export const storageOSVolumeSource = object("core/v1.StorageOSVolumeSource", {
  volumeName: optional(1, string),
  volumeNamespace: optional(2, string),
  fsType: optional(3, string),
  readOnly: optional(4, boolean),
  secretRef: pointer(5, localObjectReference),
});
export type StorageOSVolumeSource = Infer<typeof storageOSVolumeSource>;

export const csiVolumeSource = object("core/v1.CSIVolumeSource", {
  driver: required(1, string),
  readOnly: pointer(2, boolean),
  fsType: pointer(3, string),
  volumeAttributes: optional(4, map(string)),
  nodePublishSecretRef: pointer(5, localObjectReference),
});
export type CSIVolumeSource = Infer<typeof csiVolumeSource>;

export const persistentVolumeClaimSpec = object("core/v1.PersistentVolumeClaimSpec", {
  accessModes: optional(
    1,
    list(
      named(
        "v1.PersistentVolumeAccessMode",
        documentedEnum("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"),
      ),
    ),
  ),
  selector: pointer(4, labelSelector),
  resources: optional(2, volumeResourceRequirements),
  volumeName: optional(3, string),
  storageClassName: pointer(5, string),
  volumeMode: pointer(6, named("v1.PersistentVolumeMode", documentedEnum("Block", "Filesystem"))),
  dataSource: pointer(7, typedLocalObjectReference),
  dataSourceRef: pointer(8, typedObjectReference),
  volumeAttributesClassName: pointer(9, string, {
    featureGate: "VolumeAttributesClass",
  }),
});
export type PersistentVolumeClaimSpec = Infer<typeof persistentVolumeClaimSpec>;

export const persistentVolumeClaimTemplate = object("core/v1.PersistentVolumeClaimTemplate", {
  metadata: optional(1, objectMeta),
  spec: required(2, persistentVolumeClaimSpec),
});
export type PersistentVolumeClaimTemplate = Infer<typeof persistentVolumeClaimTemplate>;

export const ephemeralVolumeSource = object("core/v1.EphemeralVolumeSource", {
  volumeClaimTemplate: pointer(1, persistentVolumeClaimTemplate),
});
export type EphemeralVolumeSource = Infer<typeof ephemeralVolumeSource>;

export const imageVolumeSource = object("core/v1.ImageVolumeSource", {
  reference: optional(1, string),
  pullPolicy: optional(2, named("v1.PullPolicy", documentedEnum("Always", "Never", "IfNotPresent"))),
});
export type ImageVolumeSource = Infer<typeof imageVolumeSource>;

export const volumeSource = object("core/v1.VolumeSource", {
  hostPath: pointer(1, hostPathVolumeSource),
  emptyDir: pointer(2, emptyDirVolumeSource),
  gcePersistentDisk: pointer(3, gcePersistentDiskVolumeSource),
  awsElasticBlockStore: pointer(4, awsElasticBlockStoreVolumeSource),
  gitRepo: pointer(5, gitRepoVolumeSource),
  secret: pointer(6, secretVolumeSource),
  nfs: pointer(7, nfsVolumeSource),
  iscsi: pointer(8, iscsiVolumeSource),
  glusterfs: pointer(9, glusterfsVolumeSource),
  persistentVolumeClaim: pointer(10, persistentVolumeClaimVolumeSource),
  rbd: pointer(11, rbdVolumeSource),
  flexVolume: pointer(12, flexVolumeSource),
  cinder: pointer(13, cinderVolumeSource),
  cephfs: pointer(14, cephFSVolumeSource),
  flocker: pointer(15, flockerVolumeSource),
  downwardAPI: pointer(16, downwardAPIVolumeSource),
  fc: pointer(17, fcVolumeSource),
  azureFile: pointer(18, azureFileVolumeSource),
  configMap: pointer(19, configMapVolumeSource),
  vsphereVolume: pointer(20, vsphereVirtualDiskVolumeSource),
  quobyte: pointer(21, quobyteVolumeSource),
  azureDisk: pointer(22, azureDiskVolumeSource),
  photonPersistentDisk: pointer(23, photonPersistentDiskVolumeSource),
  projected: pointer(26, projectedVolumeSource),
  portworxVolume: pointer(24, portworxVolumeSource),
  scaleIO: pointer(25, scaleIOVolumeSource),
  storageos: pointer(27, storageOSVolumeSource),
  csi: pointer(28, csiVolumeSource),
  ephemeral: pointer(29, ephemeralVolumeSource),
  image: pointer(30, imageVolumeSource, { featureGate: "ImageVolume" }),
});
export type VolumeSource = Infer<typeof volumeSource>;

export const volume = object("core/v1.Volume", {
  name: required(1, string),
  volumeSource: inline(2, volumeSource),
});
export type Volume = Infer<typeof volume>;
