/** Volumes of drivers that Kubernetes has removed or replaced by CSI drivers: stored, but not mounted by the agent. */
import type { Texts } from "./texts.ts";

const readOnly = "Whether the mount is read-only.";
const fsType = "The file system type: ext4, xfs.";
const partition = "The number of the partition; the whole disk if unset or 0.";
const disk = { fsType, partition, readOnly };
const azureFile = {
  secretName: "The secret with the name and the key of the storage account.",
  shareName: "The name of the share.",
  readOnly,
};
const cinder = {
  volumeID: "The ID of the volume in OpenStack.",
  fsType,
  readOnly,
  secretRef: "The secret with the credentials for OpenStack.",
};
const glusterfs = {
  endpoints: "The Endpoints object with the addresses of the servers.",
  path: "The name of the Gluster volume.",
  readOnly,
};
const rbd = {
  monitors: "Addresses of the Ceph monitors.",
  image: "The name of the image.",
  fsType,
  pool: "The pool of the image; rbd by default.",
  user: "The user; admin by default.",
  keyring: "The file with the user's keys; /etc/ceph/keyring by default.",
  secretRef: "The secret with the user's key; used instead of the keyring.",
  readOnly,
};
const scaleIO = {
  gateway: "The address of the gateway's API.",
  system: "The name of the storage system.",
  secretRef: "The secret with the user and password.",
  sslEnabled: "Whether the gateway is reached over TLS.",
  protectionDomain: "The name of the protection domain.",
  storagePool: "The storage pool of the protection domain.",
  storageMode: "ThickProvisioned or ThinProvisioned.",
  volumeName: "The name of the volume in the system.",
  fsType,
  readOnly,
};
const storageOS = {
  volumeName: "The name of the volume; unique in its namespace.",
  volumeNamespace: "The namespace in StorageOS; that of the pod if unset.",
  fsType,
  readOnly,
  secretRef: "The secret with the credentials for StorageOS.",
};

export const legacyVolumeTexts: Texts = {
  "core/v1.AWSElasticBlockStoreVolumeSource": {
    "": "A disk of Amazon EBS; replaced by the driver ebs.csi.aws.com.",
    volumeID: "The ID of the volume in AWS.",
    ...disk,
  },
  "core/v1.AzureDiskVolumeSource": {
    "": "A disk of Azure; replaced by the driver disk.csi.azure.com.",
    diskName: "The name of the disk.",
    diskURI: "The URI of the disk.",
    cachingMode: "None, ReadOnly or ReadWrite.",
    fsType,
    readOnly,
  },
  "core/v1.AzureFileVolumeSource": {
    "": "A share of Azure Files; replaced by the driver file.csi.azure.com.",
    ...azureFile,
  },
  "core/v1.AzureFilePersistentVolumeSource": {
    "": "A share of Azure Files; replaced by the driver file.csi.azure.com.",
    ...azureFile,
    secretNamespace: "The namespace of the secret; that of the claim if unset.",
  },
  "core/v1.CinderVolumeSource": {
    "": "A volume of OpenStack; replaced by the driver cinder.csi.openstack.org.",
    ...cinder,
  },
  "core/v1.CinderPersistentVolumeSource": {
    "": "A volume of OpenStack; replaced by the driver cinder.csi.openstack.org.",
    ...cinder,
  },
  "core/v1.FlockerVolumeSource": {
    "": "A data set of Flocker; not supported.",
    datasetName: "The name of the data set; deprecated.",
    datasetUUID: "The UUID of the data set.",
  },
  "core/v1.GCEPersistentDiskVolumeSource": {
    "": "A disk of Google Compute Engine; replaced by the driver pd.csi.storage.gke.io.",
    pdName: "The name of the disk.",
    ...disk,
  },
  "core/v1.GlusterfsVolumeSource": { "": "A Gluster volume; not supported.", ...glusterfs },
  "core/v1.GlusterfsPersistentVolumeSource": {
    "": "A Gluster volume; not supported.",
    ...glusterfs,
    endpointsNamespace: "The namespace of the Endpoints object; that of the claim if unset.",
  },
  "core/v1.PhotonPersistentDiskVolumeSource": {
    "": "A disk of the Photon controller; not supported.",
    pdID: "The ID of the disk.",
    fsType,
  },
  "core/v1.PortworxVolumeSource": {
    "": "A Portworx volume; replaced by the driver pxd.portworx.com.",
    volumeID: "The ID of the volume.",
    fsType,
    readOnly,
  },
  "core/v1.QuobyteVolumeSource": {
    "": "A Quobyte volume; not supported.",
    registry: "Addresses of the registries, host:port, separated by commas.",
    volume: "The name of the volume.",
    readOnly,
    user: "The user of the mount; the owner of the service by default.",
    group: "The group of the mount; no group by default.",
    tenant: "The tenant that owns the volume.",
  },
  "core/v1.RBDVolumeSource": { "": "A Ceph block device; not supported.", ...rbd },
  "core/v1.RBDPersistentVolumeSource": { "": "A Ceph block device; not supported.", ...rbd },
  "core/v1.ScaleIOVolumeSource": { "": "A ScaleIO volume; not supported.", ...scaleIO },
  "core/v1.ScaleIOPersistentVolumeSource": { "": "A ScaleIO volume; not supported.", ...scaleIO },
  "core/v1.StorageOSVolumeSource": { "": "A StorageOS volume; not supported.", ...storageOS },
  "core/v1.StorageOSPersistentVolumeSource": { "": "A StorageOS volume; not supported.", ...storageOS },
  "core/v1.VsphereVirtualDiskVolumeSource": {
    "": "A virtual disk of vSphere; replaced by the driver csi.vsphere.vmware.com.",
    volumePath: "The path of the disk's file.",
    fsType,
    storagePolicyName: "The name of the storage policy.",
    storagePolicyID: "The ID of the storage policy.",
  },
};
