/** The release of this file and the Kubernetes release whose API it speaks. */
export const PRODUCT_VERSION = "0.1.0";
export const KUBERNETES_VERSION = "v1.33.0";

/** What servers and agents report as their version: Kubernetes' own, with ours behind it as build metadata. */
export const GIT_VERSION = `${KUBERNETES_VERSION}+svc.${PRODUCT_VERSION}`;

/** In the bundle (build.mjs): JSON of the commit that it was built from. */
declare const SVC_COMMIT: string | undefined;

export interface Build {
  /** In hexadecimal. */
  readonly gitCommit: string;
  readonly gitTreeState: "clean" | "dirty" | "archive" | "";
  /** The date of the commit, so that equal sources give equal bundles; RFC 3339. */
  readonly buildDate: string;
}

/** What this program was built from; empty without a bundle, and in one of neither a checkout nor a git archive. */
export const BUILD: Build =
  typeof SVC_COMMIT === "undefined"
    ? { gitCommit: "", gitTreeState: "", buildDate: "1970-01-01T00:00:00Z" }
    : (JSON.parse(SVC_COMMIT) as Build);
