/** The EndpointSliceMirroring controller: Endpoints that users wrote for services without a selector, as slices. */

import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import type { EndpointAddress, Endpoints } from "../../api/core/endpoints/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import {
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  TRIGGER_TIME,
} from "../../api/discovery/endpoint-slice/schema.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { WorkQueue } from "../../std/async/work-queue.ts";
import { formatIp, parseIp } from "../../std/net/ip.ts";
import { statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { controllerReference, keyOf, objectReference, splitKey } from "../workload/object-keys.ts";
import { isNamespaceTerminating, messageOf } from "../workload/pod-control.ts";
import { indexSlices } from "./endpoint-slice-controller.ts";
import { repackSubsets } from "./endpoint-subsets.ts";
import { isMirrored } from "./is-mirrored.ts";
import type { LabelIndex } from "./label-index.ts";
import { sortSlicePorts } from "./port-order.ts";
import { selectorOf } from "./service-pods.ts";
import { type AddressType, endpointKey, isSameEndpoint, portsKey } from "./slice-draft.ts";
import { MirroringMetrics } from "./slice-metrics.ts";
import { MANAGED_BY, slicePrefix } from "./slice-reconciler.ts";
import { keyOfService, SERVICE_NAME, SliceTracker, serviceNameOf } from "./slice-tracker.ts";

const CONTROLLER = "endpointslicemirroring-controller.k8s.io";
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
/** As Kubernetes' controller. */
const BACKOFF = { initialMs: 1000, maxMs: 100_000, jitter: 0 };

export async function runEndpointSliceMirroringController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const services = informers.of(serviceKind);
  const endpoints = informers.of(endpointsKind);
  const slices = informers.of(endpointSliceKind);
  const component = "endpoint-slice-mirroring-controller";
  await using recorder = createEventRecorder({ client, clock, random, log, component });
  using slicesByService = indexSlices(slices);
  const controller = new MirroringController(deps, { services, endpoints, slicesByService, recorder });
  await using queue = createControllerQueue(deps, {
    name: "endpoint_slice_mirroring",
    workers: 5,
    backoff: BACKOFF,
    sync: (key, stopping) => controller.sync(key, stopping),
    onError: (key, error) => log.v(2)?.info("Failed to mirror endpoints, will retry", { key, error: String(error) }),
  });
  controller.queue = queue;
  await waitForCacheSync([services, endpoints, slices], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    endpoints.subscribe({
      put: (one, before) => {
        if (isMirrored(one) || (before !== undefined && isMirrored(before))) queue.add(keyOf(one));
      },
      delete: (one) => {
        if (isMirrored(one)) queue.add(keyOf(one));
      },
    }),
  );
  subscriptions.defer(
    services.subscribe({
      put: (service, before) => {
        const hasSelector = selectorOf(service) !== undefined;
        const isChanged = before === undefined ? !hasSelector : hasSelector !== (selectorOf(before) !== undefined);
        if (isChanged) queue.add(keyOf(service));
      },
      delete: (service) => {
        if (selectorOf(service) === undefined) queue.add(keyOf(service));
      },
    }),
  );
  subscriptions.defer(
    slices.subscribe({
      put: (slice, before) => controller.sliceChanged(slice, before),
      delete: (slice) => controller.sliceDeleted(slice),
    }),
  );
  await waitForAbort(signal);
}

interface Caches {
  readonly services: Informer<Service>;
  readonly endpoints: Informer<Endpoints>;
  readonly slicesByService: LabelIndex<EndpointSlice>;
  readonly recorder: EventRecorder;
}

class MirroringController {
  queue: WorkQueue | undefined;
  readonly #deps: ControllerDeps;
  readonly #caches: Caches;
  readonly #tracker = new SliceTracker();
  readonly #metrics: MirroringMetrics;

  constructor(deps: ControllerDeps, caches: Caches) {
    this.#deps = deps;
    this.#caches = caches;
    this.#metrics = new MirroringMetrics(deps.options.endpoints.mirroredPerSubset, deps.registry);
  }

  get #max(): number {
    return this.#deps.options.endpoints.mirroredPerSubset;
  }

  sliceChanged(slice: EndpointSlice, before: EndpointSlice | undefined): void {
    for (const each of this.#tracker.affectedBy(slice, before, isManaged)) this.#enqueue(each);
  }

  sliceDeleted(slice: EndpointSlice): void {
    if (isManaged(slice) && this.#tracker.deleted(slice)) this.#enqueue(slice);
  }

  #enqueue(slice: EndpointSlice): void {
    if (serviceNameOf(slice) !== "")
      this.queue?.addAfter(keyOfService(slice), this.#deps.options.endpoints.mirroringBatchMs);
  }

  async sync(key: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const began = clock.monotonic();
    try {
      await this.#mirror(key, signal);
    } finally {
      this.#metrics.recordSync((clock.monotonic() - began) / 1000);
    }
  }

  async #mirror(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const endpoints = this.#caches.endpoints.get(name, namespace);
    const service = this.#caches.services.get(name, namespace);
    const slices = this.#caches.slicesByService.withAll(namespace, { [SERVICE_NAME]: name, [MANAGED_BY]: CONTROLLER });
    const isWanted = endpoints !== undefined && isMirrored(endpoints);
    if (!isWanted || service === undefined || selectorOf(service) !== undefined) {
      this.#tracker.deleteService(key);
      this.#metrics.deleteService(key);
      for (const slice of slices) await this.#delete(slice, signal);
      return;
    }
    if (this.#tracker.isStale(key, slices)) throw new Error("EndpointSlice informer cache is out of date");
    const { changes, skipped } = this.#computeChanges(endpoints, slices);
    await this.#write(endpoints, changes, signal);
    this.#metrics.recordEndpointsWrites(key, slices, changes, skipped);
  }

  #computeChanges(
    endpoints: Endpoints,
    slices: readonly EndpointSlice[],
  ): { readonly changes: MirrorChanges; readonly skipped: number } {
    const { groups, invalid, skipped } = groupAddresses(endpoints, this.#max);
    this.#recordSkipped(endpoints, invalid, skipped);
    const existing = Map.groupBy(slices, ({ addressType, ports }) => `${addressType}-${portsKey(ports, true)}`);
    const changes: MirrorChanges = { create: [], update: [], delete: [] };
    for (const [key, group] of groups) {
      const [first, ...others] = existing.get(key) ?? [];
      changes.delete.push(...others);
      existing.delete(key);
      if (group.endpoints.size === 0) {
        if (first !== undefined) changes.delete.push(first);
      } else if (first === undefined) changes.create.push(newMirror(endpoints, group));
      else if (!matches(first, endpoints, group)) changes.update.push(newMirror(endpoints, group, first));
      // So that its deletion by another client is noticed, also after a restart.
      else this.#tracker.trackUnchanged(first);
    }
    for (const unwanted of existing.values()) changes.delete.push(...unwanted);
    return { changes: recycle(changes), skipped };
  }

  #recordSkipped(endpoints: Endpoints, invalid: number, skipped: number): void {
    const about = objectReference({ ...endpoints, ...ENDPOINTS_TYPE });
    const { recorder } = this.#caches;
    if (invalid > 0) {
      const message = `Skipped ${invalid} invalid IP addresses when mirroring to EndpointSlices`;
      recorder.record(about, "Warning", "InvalidIPAddress", message);
    }
    if (skipped > invalid) {
      const message =
        `A max of ${this.#max} addresses can be mirrored to EndpointSlices per Endpoints subset. ` +
        `${skipped} addresses were skipped`;
      recorder.record(about, "Warning", "TooManyAddressesToMirror", message);
    }
  }

  async #write(endpoints: Endpoints, changes: MirrorChanges, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    for (const slice of endpoints.metadata?.deletionTimestamp === undefined ? changes.create : []) {
      try {
        this.#tracker.written(await client.create(endpointSliceKind, slice, signal));
      } catch (error) {
        if (isNamespaceTerminating(error)) return;
        throw new Error(`failed to create EndpointSlice for Endpoints ${keyOf(endpoints)}: ${messageOf(error)}`, {
          cause: error,
        });
      }
    }
    for (const slice of changes.update) {
      this.#tracker.written(await client.update(endpointSliceKind, slice, signal));
    }
    for (const slice of changes.delete) await this.#delete(slice, signal);
  }

  async #delete(slice: EndpointSlice, signal: AbortSignal): Promise<void> {
    const { name = "", namespace } = slice.metadata ?? {};
    try {
      await this.#deps.client.delete(endpointSliceKind, { name, namespace }, {}, signal);
    } catch (error) {
      if (statusCodeOf(error) !== 404) throw error;
    }
  }
}

const ENDPOINTS_TYPE = { apiVersion: "v1", kind: "Endpoints" };

interface MirrorChanges {
  readonly create: EndpointSlice[];
  readonly update: EndpointSlice[];
  readonly delete: EndpointSlice[];
}

interface MirrorGroup {
  readonly type: AddressType;
  readonly ports: readonly EndpointPort[];
  readonly endpoints: Map<string, Endpoint>;
}

/** The endpoints by address type and ports, with the numbers of addresses that are invalid and that are left out. */
function groupAddresses(
  endpoints: Endpoints,
  max: number,
): {
  readonly groups: ReadonlyMap<string, MirrorGroup>;
  readonly invalid: number;
  readonly skipped: number;
} {
  const groups = new Map<string, MirrorGroup>();
  let invalid = 0;
  let skipped = 0;
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of repackSubsets(endpoints.subsets ?? [])) {
    const slicePorts = sortSlicePorts(ports.map(({ name = "", ...port }) => ({ name, ...port })));
    const all = [
      ...addresses.map((one) => [one, true] as const),
      ...notReadyAddresses.map((one) => [one, false] as const),
    ];
    const key = portsKey(slicePorts, false);
    let added = 0;
    for (const [address, ready] of all) {
      if (added >= max) break;
      const ip = parseIp(address.ip);
      if (ip === undefined) {
        invalid++;
        continue;
      }
      added++;
      const groupKey = `${ip.family}-${key}`;
      const group = groups.get(groupKey) ?? { type: ip.family, ports: slicePorts, endpoints: new Map() };
      groups.set(groupKey, group);
      const endpoint = endpointOf(address, formatIp(ip), ready);
      group.endpoints.set(endpointKey(endpoint), endpoint);
    }
    skipped += all.length - added;
  }
  return { groups, invalid, skipped };
}

function endpointOf({ targetRef, nodeName, hostname = "" }: EndpointAddress, ip: string, ready: boolean): Endpoint {
  return {
    addresses: [ip],
    conditions: { ready },
    ...(targetRef === undefined ? {} : { targetRef }),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(hostname === "" ? {} : { hostname }),
  };
}

function newMirror(
  endpoints: Endpoints,
  { type, ports, endpoints: mirrored }: MirrorGroup,
  of?: EndpointSlice,
): EndpointSlice {
  const { name = "", namespace, labels = {} } = endpoints.metadata ?? {};
  const annotations = annotationsOf(endpoints);
  return {
    metadata: {
      ...(of === undefined ? { generateName: slicePrefix(name) } : { name: of.metadata?.name }),
      namespace,
      labels: { ...labels, [SERVICE_NAME]: name, [MANAGED_BY]: CONTROLLER },
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      ownerReferences: [controllerReference({ ...ENDPOINTS_TYPE, metadata: endpoints.metadata })],
    },
    addressType: type,
    endpoints: [...mirrored.values()],
    ports,
  };
}

function annotationsOf({ metadata }: Endpoints): Readonly<Record<string, string>> {
  const { [TRIGGER_TIME]: _, [LAST_APPLIED]: __, ...rest } = metadata?.annotations ?? {};
  return rest;
}

function matches(slice: EndpointSlice, endpoints: Endpoints, { endpoints: wanted }: MirrorGroup): boolean {
  const { [MANAGED_BY]: _, [SERVICE_NAME]: __, ...labels } = slice.metadata?.labels ?? {};
  return (
    slice.endpoints.length === wanted.size &&
    slice.endpoints.every((endpoint) => {
      const found = wanted.get(endpointKey(endpoint));
      return found !== undefined && isSameEndpoint(found, endpoint);
    }) &&
    deepEqual(labels, endpoints.metadata?.labels ?? {}) &&
    deepEqual(slice.metadata?.annotations ?? {}, annotationsOf(endpoints)) &&
    !isOfReplaced(slice, endpoints)
  );
}

/** The garbage collector would delete the slice of Endpoints that were deleted and created again. */
function isOfReplaced({ metadata }: EndpointSlice, { metadata: owner }: Endpoints): boolean {
  return (metadata?.ownerReferences ?? []).some(
    ({ kind, name, uid }) => kind === "Endpoints" && name === owner?.name && uid !== owner?.uid,
  );
}

/** Updates slices that would be deleted instead of creating others. */
function recycle({ create, update, delete: deleted }: MirrorChanges): MirrorChanges {
  const created: EndpointSlice[] = [];
  const rest = [...deleted];
  for (const slice of create) {
    const index = rest.findIndex(({ addressType }) => addressType === slice.addressType);
    const [reused] = index < 0 ? [] : rest.splice(index, 1);
    if (reused === undefined) created.push(slice);
    else update.push({ ...slice, metadata: { ...slice.metadata, name: reused.metadata?.name } });
  }
  return { create: created, update, delete: rest };
}

function isManaged({ metadata }: EndpointSlice): boolean {
  return metadata?.labels?.[MANAGED_BY] === CONTROLLER;
}
