/** One resource of device plugins: its devices, their health, and which are free on which NUMA node. */
import { countNodes, iterateMasks, maskOf, type NumaMask } from "../topology/numa-mask.ts";
import type { TopologyHint } from "../topology/topology-hint.ts";
import type { DevicePlugin } from "./device-plugin.ts";
import type { PluginDevice } from "./messages.ts";

const HEALTHY = "Healthy";
/** Devices without a NUMA node. */
export const NO_NODE = -1;

interface Device {
  readonly id: string;
  readonly isHealthy: boolean;
  /** Empty: it belongs to no NUMA node. */
  readonly nodes: readonly number[];
}

/** Free devices: on the nodes that the topology manager chose, on others, and on none. */
export interface DevicesByAffinity {
  readonly aligned: readonly string[];
  readonly unaligned: readonly string[];
  readonly withoutNode: readonly string[];
}

export class DeviceResource {
  /** Undefined: it is not connected. */
  plugin: DevicePlugin | undefined;
  /** When the plugin was last disconnected, on the monotonic clock. */
  stoppedAt: number;
  /** By ID, in the order of the plugin. */
  #devices: ReadonlyMap<string, Device> = new Map();

  /** Not connected since `stoppedAt`. */
  constructor(stoppedAt: number) {
    this.stoppedAt = stoppedAt;
  }

  get healthy(): readonly string[] {
    return [...this.#devices.values()].filter(({ isHealthy }) => isHealthy).map(({ id }) => id);
  }

  get count(): number {
    return this.#devices.size;
  }

  get isTopologyAware(): boolean {
    return [...this.#devices.values()].some(({ nodes }) => nodes.length > 0);
  }

  update(devices: readonly PluginDevice[]): void {
    this.#devices = new Map(devices.map((device) => [device.id ?? "", toDevice(device)]));
  }

  markUnhealthy(): void {
    this.#devices = new Map([...this.#devices].map(([id, device]) => [id, { ...device, isHealthy: false }]));
  }

  /** `Healthy`, `Unhealthy`, or `Unknown` for a device that the plugin does not have. */
  getHealth(id: string): "Healthy" | "Unhealthy" | "Unknown" {
    const device = this.#devices.get(id);
    if (device === undefined) return "Unknown";
    return device.isHealthy ? "Healthy" : "Unhealthy";
  }

  nodesOf(id: string): readonly number[] {
    return this.#devices.get(id)?.nodes ?? [];
  }

  groupByNode(ids: readonly string[]): ReadonlyMap<number, readonly string[]> {
    const groups = new Map<number, string[]>();
    for (const id of ids) {
      const nodes = this.nodesOf(id);
      for (const node of nodes.length === 0 ? [NO_NODE] : nodes) groups.set(node, [...(groups.get(node) ?? []), id]);
    }
    return groups;
  }

  sortByAffinity(available: readonly string[], affinity: NumaMask | undefined): DevicesByAffinity {
    if (affinity === undefined || !this.isTopologyAware) return { aligned: [], unaligned: [], withoutNode: available };
    const groups = this.groupByNode(available);
    const size = (id: string): number =>
      Math.min(...this.nodesOf(id).map((node) => groups.get(node)?.length ?? Number.MAX_SAFE_INTEGER));
    const isAligned = (id: string): boolean => (maskOf(this.nodesOf(id)) & affinity) !== 0n;
    const unaligned = available.filter((id) => this.nodesOf(id).length > 0 && !isAligned(id));
    return {
      aligned: available.filter(isAligned),
      // Nodes with the fewest free devices first.
      unaligned: unaligned.sort((a, b) => size(a) - size(b)),
      withoutNode: available.filter((id) => this.nodesOf(id).length === 0),
    };
  }

  /** Lists the sets of nodes that can satisfy the request; the smallest ones are preferred. */
  makeHints(
    nodes: readonly number[],
    available: readonly string[],
    reusable: readonly string[],
    request: number,
  ): readonly TopologyHint[] {
    const matches = (mask: NumaMask, id: string): boolean => (maskOf(this.nodesOf(id)) & mask) !== 0n;
    const withNode = (ids: readonly string[]): readonly string[] => ids.filter((id) => this.nodesOf(id).length > 0);
    const used = withNode(reusable);
    const free = withNode(available);
    const all = withNode([...this.#devices.keys()]);
    let smallest = nodes.length;
    const masks: NumaMask[] = [];
    for (const mask of iterateMasks(nodes)) {
      const count = countNodes(mask);
      if (count < smallest && all.filter((id) => matches(mask, id)).length >= request) smallest = count;
      // Devices of init containers are used first, so that their nodes are part of every hint.
      if (used.some((id) => !matches(mask, id))) continue;
      if (used.length + free.filter((id) => matches(mask, id)).length >= request) masks.push(mask);
    }
    return masks.map((affinity) => ({ affinity, isPreferred: countNodes(affinity) === smallest }));
  }
}

/** Kubernetes' masks have 64 bits; nodes beyond are ignored. */
const NODES_MAX = 64n;

function toDevice({ id = "", health = "", topology }: PluginDevice): Device {
  const nodes = (topology?.nodes ?? []).map((node) => node.id ?? 0n).filter((node) => node >= 0n && node < NODES_MAX);
  return { id, isHealthy: health === HEALTHY, nodes: nodes.map(Number) };
}
