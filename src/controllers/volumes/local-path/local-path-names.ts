/** The name of the provisioner, in storage classes and annotations. */
export const LOCAL_PATH_PROVISIONER = "svc.io/local-path";
/** The default storage class of `svc up`. */
export const LOCAL_PATH_CLASS = "local-path";
/** The account of the provisioner in kube-system, and its role. */
export const LOCAL_PATH_ACCOUNT = "local-path-provisioner";
