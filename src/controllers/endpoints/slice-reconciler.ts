/**
 * Computes the EndpointSlices of a service: which to create, update and delete. Existing slices keep their endpoints
 * as far as possible, so that few slices change.
 */
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";
import type { Endpoint, EndpointPort, EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatIp, parseIp } from "../../std/net/ip.ts";
import { isPodReady } from "../workload/active-pods.ts";
import { controllerReference } from "../workload/object-keys.ts";
import { sortSlicePorts } from "./port-order.ts";
import { PortResolver, type ResolvedPort } from "./port-resolver.ts";
import { addressesOf, hasServiceHostname, isEndpoint, isHeadless } from "./service-pods.ts";
import {
  type AddressType,
  draftOf,
  endpointKey,
  finishDraft,
  isSameEndpoint,
  portsKey,
  type SliceDraft,
  type SliceDrafts,
} from "./slice-draft.ts";
import { SERVICE_NAME } from "./slice-tracker.ts";

export const MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
export const SLICE_CONTROLLER = "endpointslice-controller.k8s.io";
export const HEADLESS = "service.kubernetes.io/headless";
const ZONE = "topology.kubernetes.io/zone";
/** The maximum length of a slice's name. */
const NAME_MAX = 253;

export interface SliceChanges {
  readonly create: readonly EndpointSlice[];
  readonly update: readonly EndpointSlice[];
  readonly delete: readonly EndpointSlice[];
}

export interface SliceInput {
  /** Endpoints of a slice. */
  readonly max: number;
  readonly service: Service;
  readonly pods: readonly Pod[];
  /** Those of the service that the controller manages. */
  readonly slices: readonly EndpointSlice[];
  readonly findNode: (name: string) => Node | undefined;
  /** Adds and removes hints; may move unchanged slices to the updated ones. */
  readonly assignHints: (service: Service, type: AddressType, drafts: SliceDrafts) => void;
}

/** `errors` are texts about pods that were left out. */
export function reconcileSlices(input: SliceInput): {
  readonly byType: readonly SliceChanges[];
  readonly errors: readonly string[];
} {
  const types = addressTypesOf(input.service);
  const errors: string[] = [];
  const resolver = new PortResolver(input.service.spec?.ports ?? [], toSlicePorts);
  const byType = types.map((type) => {
    const slices = input.slices.filter(({ addressType }) => addressType === type);
    return reconcileType({ ...input, slices, resolver }, type, errors);
  });
  const others = input.slices.filter(({ addressType }) => !types.some((type) => type === addressType));
  return { byType: [...byType, { create: [], update: [], delete: others }], errors };
}

export function addressTypesOf({ spec }: Service): readonly AddressType[] {
  const families = (spec?.ipFamilies ?? []).filter((family) => family === "IPv4" || family === "IPv6");
  if (families.length > 0) return families;
  const { clusterIP = "" } = spec ?? {};
  if (clusterIP !== "" && clusterIP !== "None") return [clusterIP.includes(":") ? "IPv6" : "IPv4"];
  return ["IPv4", "IPv6"];
}

interface SlicePorts {
  readonly ports: readonly EndpointPort[];
  readonly key: string;
}

interface TypeInput extends SliceInput {
  readonly resolver: PortResolver<SlicePorts>;
}

interface EndpointGroup {
  readonly ports: readonly EndpointPort[];
  readonly endpoints: Map<string, Endpoint>;
}

function reconcileType(input: TypeInput, type: AddressType, errors: string[]): SliceChanges {
  const { service, slices } = input;
  const deleted = slices.filter((slice) => !isOwnedBy(slice, service));
  const owned = Map.groupBy(
    slices.filter((slice) => isOwnedBy(slice, service)),
    ({ ports }) => portsKey(ports, true),
  );
  const groups = groupEndpoints(input, type, errors);
  const drafts: SliceDrafts = { create: [], update: [], unchanged: [] };
  for (const [key, group] of groups) reconcileGroup(input, type, owned.get(key) ?? [], group, drafts, deleted);
  for (const [key, existing] of owned) if (!groups.has(key)) deleted.push(...existing);
  if (deleted.length === slices.length && drafts.create.length === 0) {
    const placeholder = newSlice(service, type, []);
    if (deleted.length === 1 && isPlaceholder(deleted[0]!, placeholder)) deleted.length = 0;
    else drafts.create.push(draftOf(placeholder));
  }
  const changed = new Set(
    [...drafts.update.map(({ slice }) => slice), ...deleted].map(({ metadata }) => metadata?.name),
  );
  drafts.unchanged = slices.filter(({ metadata }) => !changed.has(metadata?.name));
  input.assignHints(service, type, drafts);
  return recycleSlices(service, drafts, deleted);
}

/** The wanted endpoints by their ports. */
function groupEndpoints(
  { service, pods, findNode, resolver }: TypeInput,
  type: AddressType,
  errors: string[],
): Map<string, EndpointGroup> {
  const groups = new Map<string, EndpointGroup>();
  for (const pod of pods) {
    if (!isEndpoint(pod, true)) continue;
    const resolved = resolver.portsOf(pod);
    if (resolved === undefined) {
      const { namespace, name } = service.metadata ?? {};
      errors.push(`skipping Pod ${pod.metadata?.name} for Service ${namespace}/${name}: too many different ports`);
      continue;
    }
    const { ports, key } = resolved;
    const group = groups.get(key) ?? { ports, endpoints: new Map<string, Endpoint>() };
    groups.set(key, group);
    const nodeName = pod.spec?.nodeName ?? "";
    const node = findNode(nodeName);
    if (node === undefined && service.spec?.publishNotReadyAddresses !== true) {
      const { namespace, name } = service.metadata ?? {};
      errors.push(`skipping Pod ${pod.metadata?.name} for Service ${namespace}/${name}: Node ${nodeName} Not Found`);
      continue;
    }
    const endpoint = endpointOf(pod, node, service, type);
    if (endpoint.addresses.length > 0) group.endpoints.set(endpointKey(endpoint), endpoint);
  }
  return groups;
}

function toSlicePorts(resolved: readonly ResolvedPort[]): SlicePorts {
  const ports = sortSlicePorts(
    resolved.map(({ servicePort: { name = "", protocol = "TCP", appProtocol }, port }) => ({
      name,
      protocol,
      port,
      ...(appProtocol === undefined ? {} : { appProtocol }),
    })),
  );
  return { ports, key: portsKey(ports, false) };
}

function endpointOf(pod: Pod, node: Node | undefined, service: Service, type: AddressType): Endpoint {
  const serving = isPodReady(pod);
  const terminating = pod.metadata?.deletionTimestamp !== undefined;
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating);
  const { name, namespace, uid } = pod.metadata ?? {};
  const { nodeName = "", hostname } = pod.spec ?? {};
  const zone = node?.metadata?.labels?.[ZONE] ?? "";
  return {
    addresses: addressesOf(pod).flatMap((address) => {
      const ip = parseIp(address);
      return ip?.family === type ? [formatIp(ip)] : [];
    }),
    conditions: { ready, serving, terminating },
    targetRef: { kind: "Pod", namespace, name, uid },
    ...(nodeName === "" ? {} : { nodeName }),
    ...(zone === "" ? {} : { zone }),
    ...(hasServiceHostname(pod, service) ? { hostname } : {}),
  };
}

function reconcileGroup(
  { service, max }: SliceInput,
  type: AddressType,
  existing: readonly EndpointSlice[],
  { ports, endpoints: wanted }: EndpointGroup,
  drafts: SliceDrafts,
  deleted: EndpointSlice[],
): void {
  const updated: SliceDraft[] = [];
  const unchanged: EndpointSlice[] = [];
  for (const slice of existing) {
    const kept: Endpoint[] = [];
    let isChanged = false;
    for (const endpoint of slice.endpoints) {
      const key = endpointKey(endpoint);
      const next = wanted.get(key);
      if (next === undefined) continue;
      kept.push(next);
      isChanged ||= !isSameEndpoint(next, endpoint);
      wanted.delete(key);
    }
    const labels = labelsOf(service);
    const hasNewLabels = !deepEqual(withoutReserved(slice.metadata?.labels), withoutReserved(service.metadata?.labels));
    const relabeled = { ...slice, metadata: { ...slice.metadata, labels } };
    if (isChanged || kept.length !== slice.endpoints.length) {
      if (kept.length === 0) deleted.push(slice);
      else updated.push({ slice: relabeled, endpoints: kept });
    } else if (hasNewLabels) updated.push(draftOf(relabeled));
    else unchanged.push(slice);
  }
  const rest = [...wanted.values()];
  for (const draft of updated.toSorted((a, b) => b.endpoints.length - a.endpoints.length)) fill(draft, rest, max);
  while (rest.length > 0) {
    const fitting = rest.length < max ? findFullest(unchanged, rest.length, max) : undefined;
    if (fitting === undefined) {
      const draft = draftOf(newSlice(service, type, ports));
      fill(draft, rest, max);
      drafts.create.push(draft);
    } else {
      const draft = draftOf(fitting);
      fill(draft, rest, max);
      updated.push(draft);
      unchanged.splice(unchanged.indexOf(fitting), 1);
    }
  }
  drafts.update.push(...updated);
}

function fill({ endpoints }: SliceDraft, rest: Endpoint[], max: number): void {
  endpoints.push(...rest.splice(0, Math.max(0, max - endpoints.length)));
}

/** The slice that is nearest to full with the number of endpoints more. An empty one is never chosen. */
function findFullest(slices: readonly EndpointSlice[], count: number, max: number): EndpointSlice | undefined {
  let fullest: EndpointSlice | undefined;
  let least = max;
  for (const slice of slices) {
    const left = max - count - slice.endpoints.length;
    if (left < 0 || left >= least) continue;
    least = left;
    fullest = slice;
  }
  return fullest;
}

function newSlice(service: Service, type: AddressType, ports: readonly EndpointPort[]): EndpointSlice {
  return {
    metadata: {
      generateName: slicePrefix(service.metadata?.name ?? ""),
      namespace: service.metadata?.namespace,
      labels: labelsOf(service),
      ownerReferences: [controllerReference({ apiVersion: "v1", kind: "Service", metadata: service.metadata })],
    },
    addressType: type,
    endpoints: [],
    ports,
  };
}

/** With a dash unless the name is too long for it. */
export function slicePrefix(name: string): string {
  return name.length < NAME_MAX ? `${name}-` : name;
}

function isReserved(label: string): boolean {
  return label === SERVICE_NAME || label === MANAGED_BY || label === HEADLESS;
}

function withoutReserved(labels: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !isReserved(name)));
}

function labelsOf(service: Service): Readonly<Record<string, string>> {
  return {
    ...withoutReserved(service.metadata?.labels),
    ...(isHeadless(service) ? { [HEADLESS]: "" } : {}),
    [SERVICE_NAME]: service.metadata?.name ?? "",
    [MANAGED_BY]: SLICE_CONTROLLER,
  };
}

function isOwnedBy({ metadata }: EndpointSlice, service: Service): boolean {
  return (metadata?.ownerReferences ?? []).some(
    ({ uid, kind, apiVersion }) => uid === service.metadata?.uid && kind === "Service" && apiVersion === "v1",
  );
}

/** Whether the slice is what stands for a service without endpoints. */
function isPlaceholder(slice: EndpointSlice, placeholder: EndpointSlice): boolean {
  return (
    slice.endpoints.length === 0 &&
    (slice.ports ?? []).length === 0 &&
    deepEqual(slice.metadata?.labels ?? {}, placeholder.metadata?.labels)
  );
}

/** Updates slices that would be deleted instead of creating others. */
function recycleSlices(service: Service, { create, update }: SliceDrafts, deleted: EndpointSlice[]): SliceChanges {
  const created = create.map(finishDraft);
  const updated = update.map(finishDraft);
  const rest: EndpointSlice[] = [];
  for (const slice of deleted) {
    const last = isOwnedBy(slice, service) ? created.pop() : undefined;
    if (last === undefined) rest.push(slice);
    else updated.push({ ...last, metadata: { ...last.metadata, name: slice.metadata?.name } });
  }
  return { create: created, update: updated, delete: rest };
}
