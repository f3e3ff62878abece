/**
 * Hints of services with the annotation `service.kubernetes.io/topology-mode: Auto`: endpoints are allocated to zones
 * in proportion to the zones' CPUs, unless an endpoint would get more than 20 % more load than the average.
 */
import type { Node } from "../../api/core/node/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";
import type { Endpoint, EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { parseQuantity } from "../../schema/value/quantity.ts";
import { keyOf } from "../workload/object-keys.ts";
import type { AddressType, SliceDraft, SliceDrafts } from "./slice-draft.ts";
import { isReadyEndpoint, moveToUpdate, preferOwnZones, removeHints, withoutHints, withZone } from "./zone-hints.ts";

const OVERLOAD_MAX = 0.2;
const ZONE = "topology.kubernetes.io/zone";
const MODE = "service.kubernetes.io/topology-mode";
const DEPRECATED_MODE = "service.kubernetes.io/topology-aware-hints";
const CONTROL_PLANE = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

const INSUFFICIENT_NODES = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
const EXCEEDS_OVERLOAD =
  "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold";

type Counts = Map<string, number>;

interface Allocation {
  readonly minimum: number;
  readonly maximum: number;
  readonly desired: number;
}

export interface HintEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

export class TopologyHints {
  /** The share of each zone in the CPUs of all nodes; undefined if it cannot be computed. */
  #ratios: ReadonlyMap<string, number> | undefined;
  /** By service and address type: endpoints by zone. */
  readonly #allocated = new Map<string, ReadonlyMap<string, number>>();
  /** Services whose last address type got hints: an event says when that changes. */
  readonly #hinted = new Set<string>();
  readonly #allowsSame: boolean;

  /** `allowsSame`: the gate PreferSameTrafficDistribution. */
  constructor(allowsSame = false) {
    this.#allowsSame = allowsSame;
  }

  setNodes(nodes: Iterable<Node>): void {
    this.#ratios = cpuRatios(nodes);
  }

  /** The services whose endpoints no longer suffice for a zone. */
  overloadedServices(): ReadonlySet<string> {
    const overloaded = [...this.#allocated].filter(([, counts]) => isOverloaded(counts, this.#ratios));
    return new Set(overloaded.map(([key]) => key.slice(0, key.lastIndexOf("/"))));
  }

  deleteService(key: string): void {
    this.#hinted.delete(key);
    for (const type of ["IPv4", "IPv6"]) this.#allocated.delete(`${key}/${type}`);
  }

  /** Returns events about the service. */
  assign(service: Service, type: AddressType, drafts: SliceDrafts): readonly HintEvent[] {
    const key = keyOf(service);
    const entry = `${key}/${type}`;
    if (!usesTopology(service)) {
      const had = this.#hinted.delete(key);
      this.#allocated.delete(entry);
      const distribution = service.spec?.trafficDistribution;
      const isSame = this.#allowsSame && (distribution === "PreferSameZone" || distribution === "PreferSameNode");
      if (distribution === "PreferClose" || isSame) preferOwnZones(drafts, isSame && distribution === "PreferSameNode");
      else removeHints(drafts);
      return had ? [disabled("Topology Aware Hints has been disabled", type)] : [];
    }
    const counts = this.#allocate(drafts);
    if (typeof counts === "string") {
      this.#hinted.delete(key);
      this.#allocated.delete(entry);
      removeHints(drafts);
      return [disabled(counts, type)];
    }
    this.#allocated.set(entry, counts);
    if (this.#hinted.has(key)) return [];
    this.#hinted.add(key);
    const message = `Topology Aware Hints has been enabled, addressType: ${type}`;
    return [{ type: "Normal", reason: "TopologyAwareHintsEnabled", message }];
  }

  /** Returns the number of endpoints of each zone, or why there are no hints. */
  #allocate(drafts: SliceDrafts): Counts | string {
    const total = [...drafts.create, ...drafts.update, ...drafts.unchanged]
      .flatMap(({ endpoints }) => endpoints)
      .filter(isReadyEndpoint).length;
    const allocations = computeAllocations(this.#ratios, total);
    if (typeof allocations === "string") return allocations;
    const counts: Counts = new Map();
    moveToUpdate(drafts, (slice) => {
      const hints = countHints(slice, counts, allocations);
      for (const [zone, count] of hints ?? []) increment(counts, zone, count);
      return hints === undefined;
    });
    const changed = [...drafts.create, ...drafts.update];
    for (const { endpoints } of changed) {
      for (const [index, endpoint] of endpoints.entries()) {
        if (!isReadyEndpoint(endpoint)) endpoints[index] = withoutHints(endpoint);
        else if (endpoint.zone === undefined) return "One or more endpoints do not have a zone specified";
        else {
          increment(counts, endpoint.zone, 1);
          endpoints[index] = withZone(endpoint, endpoint.zone);
        }
      }
    }
    redistribute(changed, allocations, counts);
    return counts.size === 0 ? "No hints allocated for zones" : counts;
  }
}

export function usesTopology({ metadata }: Service): boolean {
  const annotations = metadata?.annotations ?? {};
  const mode = annotations[DEPRECATED_MODE] ?? annotations[MODE];
  return mode === "Auto" || mode === "auto";
}

function disabled(message: string, type: AddressType): HintEvent {
  return { type: "Warning", reason: "TopologyAwareHintsDisabled", message: `${message}, addressType: ${type}` };
}

function increment(counts: Counts, zone: string, by: number): void {
  counts.set(zone, (counts.get(zone) ?? 0) + by);
}

function cpuRatios(nodes: Iterable<Node>): ReadonlyMap<string, number> | undefined {
  const cpus: Counts = new Map();
  for (const node of nodes) {
    const labels = node.metadata?.labels ?? {};
    if (CONTROL_PLANE.some((label) => label in labels) || !isNodeReady(node)) continue;
    const { [ZONE]: zone = "" } = labels;
    const cpu = Number(parseQuantity(node.status?.allocatable?.cpu ?? "0")?.nanos ?? 0n);
    if (zone === "" || cpu === 0) return undefined;
    increment(cpus, zone, cpu);
  }
  if (cpus.size < 2) return undefined;
  const total = [...cpus.values()].reduce((sum, cpu) => sum + cpu, 0);
  return new Map([...cpus].map(([zone, cpu]) => [zone, cpu / total]));
}

export function isNodeReady({ status }: Node): boolean {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
}

function computeAllocations(
  ratios: ReadonlyMap<string, number> | undefined,
  total: number,
): ReadonlyMap<string, Allocation> | string {
  if (ratios === undefined) return INSUFFICIENT_NODES;
  const numbers = `(${total} endpoints, ${ratios.size} zones)`;
  if (ratios.size > total) return `Insufficient number of endpoints ${numbers}`;
  const minimums = [...ratios].map(([zone, ratio]) => ({
    zone,
    desired: ratio * total,
    minimum: Math.ceil((ratio * total) / (1 + OVERLOAD_MAX)),
  }));
  const left = total - minimums.reduce((sum, { minimum }) => sum + minimum, 0);
  if (left < 0) return `${EXCEEDS_OVERLOAD} ${numbers}`;
  return new Map(
    minimums.map(({ zone, desired, minimum }) => [
      zone,
      { minimum, maximum: minimum + left, desired: Math.max(desired, minimum) },
    ]),
  );
}

/** Undefined if the hints of the slice are incomplete, or give a zone more than its maximum. */
function countHints(
  { endpoints }: EndpointSlice,
  allocated: Counts,
  allocations: ReadonlyMap<string, Allocation>,
): Counts | undefined {
  const counts: Counts = new Map();
  for (const endpoint of endpoints.filter(isReadyEndpoint)) {
    const zones = endpoint.hints?.forZones ?? [];
    if (zones.length === 0 || zones.some(({ name }) => !allocations.has(name))) return undefined;
    for (const { name } of zones) increment(counts, name, 1);
  }
  const exceeds = [...counts].some(
    ([zone, count]) => count + (allocated.get(zone) ?? 0) > (allocations.get(zone)?.maximum ?? 0),
  );
  return exceeds ? undefined : counts;
}

/** Moves endpoints from zones with more than their share to those with less. */
function redistribute(
  drafts: readonly SliceDraft[],
  allocations: ReadonlyMap<string, Allocation>,
  counts: Counts,
): void {
  const [giving, receiving] = computeMoves(allocations, counts);
  for (const { endpoints } of drafts) {
    for (const [index, endpoint] of endpoints.entries()) {
      const from = endpoint.zone ?? "";
      const to = [...receiving].find(([, count]) => count > 0)?.[0];
      if (to === undefined) return;
      if (!isReadyEndpoint(endpoint) || (giving.get(from) ?? 0) === 0) continue;
      endpoints[index] = withZone(endpoint as Endpoint, to);
      increment(giving, from, -1);
      increment(receiving, to, -1);
      increment(counts, from, -1);
      increment(counts, to, 1);
    }
  }
}

function computeMoves(
  allocations: ReadonlyMap<string, Allocation>,
  counts: Counts,
): readonly [giving: Counts, receiving: Counts] {
  const surplus: Counts = new Map();
  const deficit: Counts = new Map();
  for (const [zone, { desired }] of allocations) {
    const difference = (counts.get(zone) ?? 0) - desired;
    if (difference > 0) surplus.set(zone, difference);
    else if (difference < 0) deficit.set(zone, -difference);
  }
  const giving: Counts = new Map();
  const receiving: Counts = new Map();
  for (;;) {
    const [from, give] = largest(surplus);
    const [to, receive] = largest(deficit);
    if ((give < 1 && receive < 1) || give < 0.5 || receive < 0.5) return [giving, receiving];
    increment(giving, from, 1);
    increment(surplus, from, -1);
    increment(receiving, to, 1);
    increment(deficit, to, -1);
  }
}

function largest(counts: Counts): readonly [zone: string, count: number] {
  let most: readonly [string, number] = ["", 0];
  for (const entry of counts) if (entry[1] > most[1]) most = entry;
  return most;
}

function isOverloaded(counts: ReadonlyMap<string, number>, ratios: ReadonlyMap<string, number> | undefined): boolean {
  if (counts.size === 0) return false;
  if (ratios === undefined) return true;
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return [...ratios].some(([zone, ratio]) => (counts.get(zone) ?? 0) < Math.ceil((total * ratio) / (1 + OVERLOAD_MAX)));
}
