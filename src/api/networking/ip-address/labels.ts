/** Labels of IPAddress objects. */
export const FAMILY_LABEL = "ipaddress.kubernetes.io/ip-family";
export const MANAGER_LABEL = "ipaddress.kubernetes.io/managed-by";

/** The manager of the addresses that API servers allocate to services. */
export const MANAGER = "ipallocator.k8s.io";
