import type { Pod } from "../../api/core/pod/schema.ts";
import type { NodeInfo } from "../node-info.ts";

/**
 * Returns Kubernetes' reasons why the pod does not fit the node; empty if it fits. `all` are all nodes, for rules about
 * other pods.
 */
export type Filter = (pod: Pod, info: NodeInfo, all: readonly NodeInfo[]) => readonly string[];
