/** Numbers by topology domain: a label key and its value. */
import { getMember } from "../../../schema/value/plain-object.ts";
import type { ClusterCache } from "../../cache/cluster-cache.ts";
import type { NodeInfo } from "../../cache/node-info.ts";

export class DomainCounts {
  readonly #byKey: Map<string, Map<string, number>>;

  constructor(byKey = new Map<string, Map<string, number>>()) {
    this.#byKey = byKey;
  }

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  /** Adds to the domain of the node; nothing if the node lacks the label. */
  add(topologyKey: string, { labels }: NodeInfo, amount: number): void {
    const value = getMember(labels, topologyKey);
    if (value === undefined) return;
    const values = this.#byKey.get(topologyKey) ?? new Map<string, number>();
    const next = (values.get(value) ?? 0) + amount;
    if (next === 0) values.delete(value);
    else values.set(value, next);
    if (values.size === 0) this.#byKey.delete(topologyKey);
    else this.#byKey.set(topologyKey, values);
  }

  /** Adds counts by node. */
  addNodes(topologyKey: string, counts: ReadonlyMap<string, number>, cache: ClusterCache, factor = 1): void {
    for (const [nodeName, count] of counts) {
      const node = cache.node(nodeName);
      if (node !== undefined) this.add(topologyKey, node, count * factor);
    }
  }

  get(topologyKey: string, { labels }: NodeInfo): number {
    const value = getMember(labels, topologyKey);
    return value === undefined ? 0 : (this.#byKey.get(topologyKey)?.get(value) ?? 0);
  }

  /** Whether a domain of the node has a positive count. */
  containsNode(node: NodeInfo): boolean {
    for (const topologyKey of this.#byKey.keys()) {
      if (this.get(topologyKey, node) > 0) return true;
    }
    return false;
  }

  /** The sum over all keys. */
  sum(node: NodeInfo): number {
    let sum = 0;
    for (const topologyKey of this.#byKey.keys()) sum += this.get(topologyKey, node);
    return sum;
  }

  clone(): DomainCounts {
    return new DomainCounts(new Map([...this.#byKey].map(([key, values]) => [key, new Map(values)])));
  }
}
