import type { Pod } from "../../api/core/pod.ts";
import type { Authorizer } from "../user.ts";

/** Which pods are on which node, and what they refer to. Fed with every pod event. */
export interface NodeGraph {
  putPod(pod: Pod): void;
  deletePod(namespace: string, name: string): void;
  /** Whether a pod of this node refers to the object. */
  refers(node: string, resource: string, namespace: string, name: string): boolean;
}

export declare function createNodeGraph(): NodeGraph;
/** `--authorization-mode=Node`: what a `system:node:NAME` in group `system:nodes` may do. */
export declare function nodeAuthorizer(graph: NodeGraph): Authorizer;
