/** Replaced by the bundler with the version in package.json; absent when the sources run as they are. */
declare const SVC_VERSION: string | undefined;
declare const SVC_COMMIT: string | undefined;

/** The product's own version. */
export const productVersion: string = typeof SVC_VERSION === "string" ? SVC_VERSION : "0.1.0";

/** The commit the bundle was made from; empty when unknown. */
export const gitCommit: string = typeof SVC_COMMIT === "string" ? SVC_COMMIT : "";

/** The Kubernetes release whose behaviour this program has. */
export const kubernetesVersion = { major: "1", minor: "33", text: "v1.33.0" } as const;
