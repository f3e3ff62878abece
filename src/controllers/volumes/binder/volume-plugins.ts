/** What Kubernetes' controller manager does with volumes of types that it can delete itself. */
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";

/**
 * Why the volume cannot be deleted; undefined for a directory below /tmp. Kubernetes deletes such a directory on the
 * host of its controller manager, which need not be the node that has it. Here only the object is deleted.
 */
export function explainDeletionFailure({ metadata, spec = {} }: PersistentVolume): string | undefined {
  const { hostPath, nfs } = spec;
  if (hostPath !== undefined) {
    if (/\/tmp\/.+/.test(hostPath.path)) return undefined;
    return `host_path deleter only supports /tmp/.+ but received provided ${hostPath.path}`;
  }
  const problem = nfs === undefined ? "no volume plugin matched" : "no deletable volume plugin matched";
  return `error getting deleter volume plugin for volume ${JSON.stringify(metadata?.name)}: ${problem}`;
}
