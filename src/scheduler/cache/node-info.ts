/** A node with the pods on it and the sums of what they use, which additions and removals maintain. */
import type { Node } from "../../api/core/node/schema.ts";
import { parseQuantity, quantityValue } from "../../api/meta/quantity.ts";
import type { Labels } from "./label-match.ts";
import { type HostPort, type PodInfo, portsConflict } from "./pod-info.ts";
import { Resources } from "./resources.ts";

const NO_LABELS: Labels = {};
const NO_TAINTS: readonly Taint[] = [];

export type Taint = NonNullable<NonNullable<Node["spec"]>["taints"]>[number];

export class NodeInfo {
  readonly name: string;
  /** Undefined while only pods that name the node are there. */
  node: Node | undefined;
  labels: Labels = NO_LABELS;
  taints: readonly Taint[] = NO_TAINTS;
  allocatable = new Resources();
  allowedPods = 0;
  /** By uid: pods that are bound to the node or being bound. */
  readonly pods = new Map<string, PodInfo>();
  requested = new Resources();
  nonZeroMilliCpu = 0;
  nonZeroMemory = 0;
  /** The images on the node by their names, with sizes in bytes. */
  imageSizes = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  setNode(node: Node | undefined): void {
    this.node = node;
    this.labels = node?.metadata?.labels ?? NO_LABELS;
    this.taints = node?.spec?.taints ?? NO_TAINTS;
    this.allocatable = Resources.of(node?.status?.allocatable);
    const pods = parseQuantity(node?.status?.allocatable?.pods ?? "0");
    this.allowedPods = pods === undefined ? 0 : quantityValue(pods);
    this.imageSizes = new Map();
    for (const { names = [], sizeBytes } of node?.status?.images ?? []) {
      for (const name of names) this.imageSizes.set(name, Number(sizeBytes ?? 0));
    }
  }

  addPod(pod: PodInfo): void {
    this.pods.set(pod.uid, pod);
    this.#count(pod, 1);
  }

  /** Returns whether the pod was there. */
  removePod(uid: string): boolean {
    const pod = this.pods.get(uid);
    if (pod === undefined) return false;
    this.pods.delete(uid);
    this.#count(pod, -1);
    return true;
  }

  hasPortConflict(ports: readonly HostPort[]): boolean {
    for (const { hostPorts } of this.pods.values()) {
      if (hostPorts.some((taken) => ports.some((wanted) => portsConflict(taken, wanted)))) return true;
    }
    return false;
  }

  /** A copy with pods of its own, for attempts with other pods. */
  clone(): NodeInfo {
    const copy = new NodeInfo(this.name);
    Object.assign(copy, { node: this.node, labels: this.labels, taints: this.taints });
    Object.assign(copy, { allocatable: this.allocatable, allowedPods: this.allowedPods, imageSizes: this.imageSizes });
    for (const [uid, pod] of this.pods) copy.pods.set(uid, pod);
    copy.requested = this.requested.clone();
    copy.nonZeroMilliCpu = this.nonZeroMilliCpu;
    copy.nonZeroMemory = this.nonZeroMemory;
    return copy;
  }

  #count(pod: PodInfo, factor: 1 | -1): void {
    this.requested.add(pod.requests, factor);
    this.nonZeroMilliCpu += factor * pod.nonZeroRequests.milliCpu;
    this.nonZeroMemory += factor * pod.nonZeroRequests.memory;
  }
}
