/** The CSI drivers to which Kubernetes' in-tree volume plugins have moved. */
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import { getMember } from "../../schema/value/plain-object.ts";

const driverOfPlugin: Readonly<Record<string, string>> = {
  "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
  "kubernetes.io/azure-disk": "disk.csi.azure.com",
  "kubernetes.io/azure-file": "file.csi.azure.com",
  "kubernetes.io/cinder": "cinder.csi.openstack.org",
  "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
  "kubernetes.io/portworx-volume": "pxd.portworx.com",
  "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
};

/** Undefined for a provisioner that is not one of these plugins. */
export function csiDriverOf(plugin: string): string | undefined {
  return getMember(driverOfPlugin, plugin);
}

/** The in-tree plugin of a volume; undefined for others. */
export function migratedPluginOf({ spec }: PersistentVolume): string | undefined {
  if (spec?.awsElasticBlockStore !== undefined) return "kubernetes.io/aws-ebs";
  if (spec?.azureDisk !== undefined) return "kubernetes.io/azure-disk";
  if (spec?.azureFile !== undefined) return "kubernetes.io/azure-file";
  if (spec?.cinder !== undefined) return "kubernetes.io/cinder";
  if (spec?.gcePersistentDisk !== undefined) return "kubernetes.io/gce-pd";
  if (spec?.portworxVolume !== undefined) return "kubernetes.io/portworx-volume";
  if (spec?.vsphereVolume !== undefined) return "kubernetes.io/vsphere-volume";
  return undefined;
}
