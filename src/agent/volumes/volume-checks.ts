/** Kubernetes' checks of a persistent volume before its plugin mounts it. */
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import { matchesTerms, type SelectedNode } from "../../scheduler/plugins/nodes/node-selector.ts";
import { OperationError } from "./operation-error.ts";

/** Rejects volumes of other nodes, and mount options that the volume's type does not have. */
export function checkVolume({ metadata, spec = {} }: PersistentVolume, node: SelectedNode): void {
  const prefix = spec.volumeMode === "Block" ? "MapVolume" : "MountVolume";
  const fail = (check: string, why: string): OperationError =>
    new OperationError(`${prefix}.${check} check`, metadata?.name ?? "", "FailedMount", new Error(why));
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms;
  if (terms !== undefined && !matchesTerms(terms, node)) throw fail("NodeAffinity", "no matching NodeSelectorTerms");
  const takesOptions = spec.hostPath === undefined && spec.flexVolume === undefined;
  if (!takesOptions && spec.volumeMode !== "Block" && (spec.mountOptions ?? []).length > 0)
    throw fail("MountOptionSupport", "mount options are not supported for this volume type");
}
