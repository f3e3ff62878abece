import type { Pod } from "../../../api/core/pod/schema.ts";
import type { NodeInfo } from "../node-info.ts";

/**
 * Why a pod cannot go to a node, in the words of Kubernetes' scheduler; empty when it can. `all` are the nodes of the
 * cluster, `info` among them, for rules about where other pods are.
 */
export type Filter = (pod: Pod, info: NodeInfo, all: readonly NodeInfo[]) => readonly string[];
