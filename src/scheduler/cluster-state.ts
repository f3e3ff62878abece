/** The scheduler's cache of nodes and their pods. Pods that are being bound count before the server confirms it. */
import type { Node } from "../api/core/node/schema.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import { createNodeInfo, type NodeInfo, usesResources } from "./node-info.ts";

export function podKey(pod: Pod): string {
  return `${pod.metadata?.namespace ?? ""}/${pod.metadata?.name ?? ""}`;
}

export class ClusterState {
  readonly #nodes = new Map<string, Node>();
  readonly #podsByNode = new Map<string, Map<string, Pod>>();
  readonly #nodeOfPod = new Map<string, string>();

  putNode(node: Node): void {
    this.#nodes.set(node.metadata?.name ?? "", node);
  }

  deleteNode(node: Node): void {
    this.#nodes.delete(node.metadata?.name ?? "");
  }

  /** Returns whether resources of a node became free. */
  putPod(pod: Pod): boolean {
    const nodeName = pod.spec?.nodeName;
    if (nodeName === undefined || nodeName === "") return false;
    if (!usesResources(pod)) return this.deletePod(pod);
    this.#addToNode(pod, nodeName);
    return false;
  }

  /** Returns whether resources of a node became free. */
  deletePod(pod: Pod): boolean {
    const key = podKey(pod);
    const nodeName = this.#nodeOfPod.get(key);
    if (nodeName === undefined) return false;
    this.#nodeOfPod.delete(key);
    const pods = this.#podsByNode.get(nodeName);
    pods?.delete(key);
    if (pods?.size === 0) this.#podsByNode.delete(nodeName);
    return true;
  }

  /** Adds the pod to the node before it is bound, so that the next pods see its requests. `deletePod` reverts it. */
  assume(pod: Pod, nodeName: string): void {
    this.#addToNode(pod, nodeName);
  }

  nodeInfos(): readonly NodeInfo[] {
    return [...this.#nodes].map(([name, node]) =>
      createNodeInfo(node, [...(this.#podsByNode.get(name)?.values() ?? [])]),
    );
  }

  #addToNode(pod: Pod, nodeName: string): void {
    const key = podKey(pod);
    if (this.#nodeOfPod.get(key) !== nodeName) this.deletePod(pod);
    this.#nodeOfPod.set(key, nodeName);
    const pods = this.#podsByNode.get(nodeName) ?? new Map<string, Pod>();
    this.#podsByNode.set(nodeName, pods.set(key, pod));
  }
}
