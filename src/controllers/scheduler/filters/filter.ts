import type { Pod } from "../../../api/core/pod.ts";
import type { NodeInfo } from "../node-info.ts";

/** Why a pod cannot go to a node, in the words of Kubernetes' scheduler; empty when it can. */
export type Filter = (pod: Pod, info: NodeInfo) => readonly string[];
