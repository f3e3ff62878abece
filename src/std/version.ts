/** The release of this file and the Kubernetes release whose API it speaks. */
export const PRODUCT_VERSION = "0.1.0";
export const KUBERNETES_VERSION = "v1.33.0";

/** What servers and agents report as their version: Kubernetes' own, with ours behind it as build metadata. */
export const GIT_VERSION = `${KUBERNETES_VERSION}+svc.${PRODUCT_VERSION}`;
