/** The pools of devices that a node can use, from the newest generation of their slices. */
import type { NodeSelector } from "../../../api/core/node/selector.ts";
import type { Device, ResourceSlice } from "../../../api/resource/schemas.ts";
import { matchesTerms, type SelectedNode } from "../nodes/node-selector.ts";

/** `driver/pool/device` */
export type DeviceId = string;

export interface Candidate {
  readonly id: DeviceId;
  readonly device: Device;
  readonly slice: ResourceSlice;
  readonly pool: DevicePool;
}

export interface DevicePool {
  /** `driver/pool` */
  readonly id: string;
  readonly name: string;
  readonly slices: readonly ResourceSlice[];
  /** Not all slices are there. */
  readonly isIncomplete: boolean;
  /** Why no device of it can be used. */
  readonly problem: string | undefined;
}

interface NodeSelection {
  readonly nodeName?: string | undefined;
  readonly allNodes?: boolean | undefined;
  readonly nodeSelector?: NodeSelector | undefined;
}

export function deviceId({ driver, pool, device }: { driver: string; pool: string; device: string }): DeviceId {
  return `${driver}/${pool}/${device}`;
}

/** `isPartitionable`: the gate of partitionable devices; without it, slices that use the feature are left out. */
export function gatherPools(
  slices: Iterable<ResourceSlice>,
  node: SelectedNode,
  isPartitionable: boolean,
): readonly DevicePool[] {
  const pools = new Map<string, ResourceSlice[]>();
  for (const slice of slices) {
    const { spec } = slice;
    const usesPartitions = (spec.sharedCounters ?? []).length > 0 || spec.perDeviceNodeSelection !== undefined;
    if ((usesPartitions && !isPartitionable) || !isUsableOn(slice, node)) continue;
    const id = `${spec.driver}/${spec.pool.name}`;
    const known = pools.get(id) ?? [];
    const difference = Number(spec.pool.generation) - Number(known[0]?.spec.pool.generation ?? spec.pool.generation);
    if (difference < 0) continue;
    pools.set(id, difference > 0 ? [slice] : [...known, slice]);
  }
  return [...pools].map(([id, of]) => makePool(id, of));
}

function makePool(id: string, slices: readonly ResourceSlice[]): DevicePool {
  const names = new Set<string>();
  let duplicate: string | undefined;
  for (const { name } of slices.flatMap(({ spec }) => spec.devices ?? [])) {
    if (names.has(name)) duplicate ??= name;
    names.add(name);
  }
  const { pool } = slices[0]!.spec;
  return {
    id,
    name: pool.name,
    slices,
    isIncomplete: slices.length !== Number(pool.resourceSliceCount),
    problem: duplicate === undefined ? undefined : `duplicate device name ${duplicate}`,
  };
}

export function listCandidates(pools: readonly DevicePool[]): readonly Candidate[] {
  return pools.flatMap((pool) =>
    pool.slices.flatMap((slice) =>
      (slice.spec.devices ?? []).map((device) => {
        const { driver } = slice.spec;
        return { id: deviceId({ driver, pool: pool.name, device: device.name }), device, slice, pool };
      }),
    ),
  );
}

function isUsableOn({ spec }: ResourceSlice, node: SelectedNode): boolean {
  if (spec.nodeName || spec.allNodes || spec.nodeSelector !== undefined) return selectsNode(spec, node);
  if (spec.perDeviceNodeSelection !== true) return false;
  return (spec.devices ?? []).some((device) => selectsNode(device, node));
}

/** Whether the slice or device is available on the node. */
export function selectsNode({ nodeName, allNodes, nodeSelector }: NodeSelection, node: SelectedNode): boolean {
  if (nodeName) return nodeName === node.name;
  if (allNodes === true) return true;
  return nodeSelector !== undefined && matchesTerms(nodeSelector.nodeSelectorTerms, node);
}
