/** Annotations of volumes and claims that the volume controllers, the scheduler and provisioners share. */
export const BIND_COMPLETED = "pv.kubernetes.io/bind-completed";
export const BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller";
/** The provisioner that created the volume. */
export const PROVISIONED_BY = "pv.kubernetes.io/provisioned-by";
/** The CSI driver to which an in-tree plugin has moved. */
export const MIGRATED_TO = "pv.kubernetes.io/migrated-to";
/** The provisioner that must create a volume for the claim. */
export const STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner";
export const BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner";
/** The node that the scheduler selected for the first pod of the claim. */
export const SELECTED_NODE = "volume.kubernetes.io/selected-node";
export const STORAGE_RESIZER = "volume.kubernetes.io/storage-resizer";
/** The capacity before an expansion that the node has not finished. */
export const PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity";
