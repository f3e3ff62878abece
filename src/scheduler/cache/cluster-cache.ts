/**
 * The scheduler's view of nodes and the pods on them. A pod counts from the decision on ("assumed"), before the API
 * server confirms its binding.
 */
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import type { Labels } from "./label-match.ts";
import { NodeInfo } from "./node-info.ts";
import { interleaveZones } from "./node-order.ts";
import { PodInfo, uidOf } from "./pod-info.ts";
import { PodMatchIndex } from "./pod-match-index.ts";
import { TermIndex } from "./term-index.ts";

interface CachedPod {
  readonly info: PodInfo;
  readonly nodeName: string;
  readonly assumed: boolean;
}

export class ClusterCache {
  /** Also holds names without a node object, to which pods are bound. */
  readonly #nodes = new Map<string, NodeInfo>();
  readonly #pods = new Map<string, CachedPod>();
  /** The images of nodes by name. As upstream, the size is that on the node that had the image first. */
  readonly #images = new Map<string, { readonly size: number; nodes: number }>();
  /** The number of pods on nodes that use each claim, by `namespace/name`. */
  readonly #claimUsers = new Map<string, number>();
  #ordered: readonly NodeInfo[] | undefined;
  readonly #namespaceLabels: (namespace: string) => Labels | undefined;
  readonly #namespaces: () => Iterable<readonly [string, Labels]>;
  readonly matches = new PodMatchIndex(() => this.#podsByNode());
  readonly terms = new TermIndex();

  constructor(namespaces: {
    readonly labelsOf: (namespace: string) => Labels | undefined;
    readonly all: () => Iterable<readonly [string, Labels]>;
  }) {
    this.#namespaceLabels = namespaces.labelsOf;
    this.#namespaces = namespaces.all;
  }

  namespaceLabels(namespace: string): Labels | undefined {
    return this.#namespaceLabels(namespace);
  }

  namespaces(): Iterable<readonly [string, Labels]> {
    return this.#namespaces();
  }

  /** Nodes in the order in which they are tried. The array is replaced when nodes come or go. */
  nodes(): readonly NodeInfo[] {
    this.#ordered ??= interleaveZones([...this.#nodes.values()].filter(({ node }) => node !== undefined));
    return this.#ordered;
  }

  node(name: string): NodeInfo | undefined {
    const info = this.#nodes.get(name);
    return info?.node === undefined ? undefined : info;
  }

  image(name: string): { readonly size: number; readonly nodes: number } | undefined {
    return this.#images.get(name);
  }

  /** How many pods on nodes use the claim. */
  claimUsers(namespace: string, name: string): number {
    return this.#claimUsers.get(`${namespace}/${name}`) ?? 0;
  }

  putNode(node: Node): void {
    const info = this.#nodeInfo(node.metadata?.name ?? "");
    const before = info.node;
    if (!deepEqual(before?.status?.images, node.status?.images)) {
      this.#countImages(info, -1);
      info.setNode(node);
      this.#countImages(info, 1);
    } else {
      info.setNode(node);
    }
    if (before === undefined || before.metadata?.labels !== node.metadata?.labels) this.#ordered = undefined;
  }

  deleteNode(name: string): void {
    const info = this.#nodes.get(name);
    if (info === undefined) return;
    this.#countImages(info, -1);
    info.setNode(undefined);
    this.#removeIfUnused(info);
    this.#ordered = undefined;
  }

  get sizes(): Readonly<Record<"nodes" | "pods" | "assumed_pods", number>> {
    const assumed = this.#pods.values().filter((pod) => pod.assumed);
    return { nodes: this.nodes().length, pods: this.#pods.size, assumed_pods: [...assumed].length };
  }

  pod(uid: string): CachedPod | undefined {
    return this.#pods.get(uid);
  }

  /** Adds or replaces a pod that is bound. */
  putPod(pod: Pod): void {
    this.#put(new PodInfo(pod), pod.spec?.nodeName ?? "", false);
  }

  /** Adds the pod to the node before it is bound. `deletePod` reverts it. */
  assume(info: PodInfo, nodeName: string): void {
    this.#put(info, nodeName, true);
  }

  isAssumed(pod: Pod): boolean {
    return this.#pods.get(uidOf(pod))?.assumed === true;
  }

  deletePod(uid: string): void {
    const cached = this.#pods.get(uid);
    if (cached === undefined) return;
    this.#pods.delete(uid);
    const info = this.#nodes.get(cached.nodeName);
    if (info?.removePod(uid) === true) this.#removeIfUnused(info);
    this.matches.removePod(cached.nodeName, cached.info);
    this.terms.removePod(cached.nodeName, cached.info);
    this.#countClaims(cached.info, -1);
  }

  #put(info: PodInfo, nodeName: string, assumed: boolean): void {
    this.deletePod(info.uid);
    this.#pods.set(info.uid, { info, nodeName, assumed });
    this.#nodeInfo(nodeName).addPod(info);
    this.matches.addPod(nodeName, info);
    this.terms.addPod(nodeName, info);
    this.#countClaims(info, 1);
  }

  #nodeInfo(name: string): NodeInfo {
    const info = this.#nodes.get(name) ?? new NodeInfo(name);
    this.#nodes.set(name, info);
    return info;
  }

  #removeIfUnused(info: NodeInfo): void {
    if (info.node === undefined && info.pods.size === 0) this.#nodes.delete(info.name);
  }

  #countClaims({ namespace, pod }: PodInfo, difference: 1 | -1): void {
    for (const { persistentVolumeClaim } of pod.spec?.volumes ?? []) {
      if (persistentVolumeClaim === undefined) continue;
      const key = `${namespace}/${persistentVolumeClaim.claimName}`;
      const next = (this.#claimUsers.get(key) ?? 0) + difference;
      if (next > 0) this.#claimUsers.set(key, next);
      else this.#claimUsers.delete(key);
    }
  }

  #countImages({ imageSizes }: NodeInfo, difference: 1 | -1): void {
    for (const [name, size] of imageSizes) {
      const image = this.#images.get(name) ?? { size, nodes: 0 };
      image.nodes += difference;
      if (image.nodes > 0) this.#images.set(name, image);
      else this.#images.delete(name);
    }
  }

  *#podsByNode(): Generator<readonly [string, PodInfo]> {
    for (const { nodeName, info } of this.#pods.values()) yield [nodeName, info];
  }
}
