/**
 * Which pods are on which node, kept up to date with every pod event; pods just bound count before the server says so.
 */
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { type NodeInfo, nodeInfo, takesRoom } from "./node-info.ts";

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

  /** Returns whether room has become free on some node. */
  putPod(pod: Pod): boolean {
    const nodeName = pod.spec?.nodeName;
    if (nodeName === undefined || nodeName === "") return false;
    if (!takesRoom(pod)) return this.deletePod(pod);
    this.#place(pod, nodeName);
    return false;
  }

  /** Returns whether room has become free on some node. */
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

  /** The pod is on its way to the node: what comes after it must leave its room. Undone by `deletePod`. */
  assume(pod: Pod, nodeName: string): void {
    this.#place(pod, nodeName);
  }

  infos(): readonly NodeInfo[] {
    return [...this.#nodes].map(([name, node]) => nodeInfo(node, [...(this.#podsByNode.get(name)?.values() ?? [])]));
  }

  #place(pod: Pod, nodeName: string): void {
    const key = podKey(pod);
    if (this.#nodeOfPod.get(key) !== nodeName) this.deletePod(pod);
    this.#nodeOfPod.set(key, nodeName);
    const pods = this.#podsByNode.get(nodeName) ?? new Map<string, Pod>();
    this.#podsByNode.set(nodeName, pods.set(key, pod));
  }
}
