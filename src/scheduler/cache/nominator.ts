/** Pods that are nominated to a node on which preemption frees capacity; other pods do not use that capacity. */
import type { PodInfo } from "./pod-info.ts";

export class Nominator {
  readonly #byNode = new Map<string, Map<string, PodInfo>>();
  readonly #nodeOf = new Map<string, string>();

  get size(): number {
    return this.#nodeOf.size;
  }

  /** An empty name removes the nomination. */
  nominate(pod: PodInfo, nodeName: string): void {
    this.delete(pod.uid);
    if (nodeName === "") return;
    this.#nodeOf.set(pod.uid, nodeName);
    const pods = this.#byNode.get(nodeName) ?? new Map<string, PodInfo>();
    this.#byNode.set(nodeName, pods.set(pod.uid, pod));
  }

  /** Keeps the nomination with the new state of the pod. */
  update(pod: PodInfo): void {
    const nodeName = this.#nodeOf.get(pod.uid);
    if (nodeName !== undefined) this.#byNode.get(nodeName)?.set(pod.uid, pod);
  }

  delete(uid: string): void {
    const nodeName = this.#nodeOf.get(uid);
    if (nodeName === undefined) return;
    this.#nodeOf.delete(uid);
    const pods = this.#byNode.get(nodeName);
    pods?.delete(uid);
    if (pods?.size === 0) this.#byNode.delete(nodeName);
  }

  nodeOf(uid: string): string | undefined {
    return this.#nodeOf.get(uid);
  }

  /** Undefined for most nodes. */
  podsFor(nodeName: string): ReadonlyMap<string, PodInfo> | undefined {
    return this.#byNode.get(nodeName);
  }
}
