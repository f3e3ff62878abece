/** The EndpointSlice controller: the ready and unready pods of each service with a selector, as EndpointSlices. */

import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { WorkQueue } from "../../std/async/work-queue.ts";
import { statusCodeOf } from "../api-errors.ts";
import { type ControllerDeps, isFeatureEnabled } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { keyOf, objectReference, splitKey } from "../workload/object-keys.ts";
import { isNamespaceTerminating, messageOf } from "../workload/pod-control.ts";
import { LabelIndex } from "./label-index.ts";
import { ServicePods, selectorOf } from "./service-pods.ts";
import { EndpointSliceMetrics } from "./slice-metrics.ts";
import { MANAGED_BY, reconcileSlices, SLICE_CONTROLLER, type SliceChanges } from "./slice-reconciler.ts";
import { keyOfService, SERVICE_NAME, SliceTracker, serviceNameOf } from "./slice-tracker.ts";
import { type HintEvent, isNodeReady, TopologyHints } from "./topology-hints.ts";
import { TriggerTimes, withTriggerTime } from "./trigger-times.ts";

const ZONE = "topology.kubernetes.io/zone";
/** As Kubernetes' controller: a sync may write many slices. */
const BACKOFF = { initialMs: 1000, maxMs: 1_000_000, jitter: 0 };
/** The delay of a sync after a slice was changed by another client. */
const SLICE_DELAY_MS = 1000;

export async function runEndpointSliceController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers, options } = deps;
  const services = informers.of(serviceKind);
  const pods = informers.of(podKind);
  const nodes = informers.of(nodeKind);
  const slices = informers.of(endpointSliceKind);
  const component = "endpoint-slice-controller";
  await using recorder = createEventRecorder({ client, clock, random, log, component });
  using servicePods = new ServicePods(pods, services);
  using slicesByService = indexSlices(slices);
  const controller = new EndpointSliceController(deps, { services, nodes, servicePods, slicesByService, recorder });
  await using queue = createControllerQueue(deps, {
    name: "endpoint_slice",
    workers: 5,
    backoff: BACKOFF,
    sync: (key, stopping) => controller.sync(key, stopping),
    onError: (key, error) =>
      log.v(2)?.info("Failed to sync endpoint slices, will retry", { key, error: String(error) }),
  });
  controller.queue = queue;
  await waitForCacheSync([services, pods, nodes, slices], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    nodes.subscribe({
      put: (node, before) => controller.nodeChanged(node, before),
      delete: () => controller.nodesChanged(),
    }),
  );
  subscriptions.defer(
    services.subscribe({ put: (service) => queue.add(keyOf(service)), delete: (service) => queue.add(keyOf(service)) }),
  );
  const addAll = (keys: Iterable<string>): void => {
    for (const key of keys) queue.addAfter(key, options.endpoints.sliceBatchMs);
  };
  subscriptions.defer(
    pods.subscribe({
      put: (pod, before) => addAll(servicePods.affectedServices(pod, before)),
      delete: (pod) => addAll(servicePods.affectedServices(pod, undefined)),
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

/** By the label of their service. */
export function indexSlices(slices: Informer<EndpointSlice>): LabelIndex<EndpointSlice> {
  return new LabelIndex(slices, ({ metadata }) => {
    const { [SERVICE_NAME]: service = "", [MANAGED_BY]: manager = "" } = metadata?.labels ?? {};
    return service === "" ? {} : { [SERVICE_NAME]: service, [MANAGED_BY]: manager };
  });
}

interface Caches {
  readonly services: Informer<Service>;
  readonly nodes: Informer<Node>;
  readonly servicePods: ServicePods;
  readonly slicesByService: LabelIndex<EndpointSlice>;
  readonly recorder: EventRecorder;
}

class EndpointSliceController {
  queue: WorkQueue | undefined;
  readonly #deps: ControllerDeps;
  readonly #caches: Caches;
  readonly #tracker = new SliceTracker();
  readonly #times = new TriggerTimes();
  readonly #hints: TopologyHints;
  readonly #sliceDelayMs: number;
  readonly #metrics: EndpointSliceMetrics;

  constructor(deps: ControllerDeps, caches: Caches) {
    this.#deps = deps;
    this.#hints = new TopologyHints(isFeatureEnabled(deps, "PreferSameTrafficDistribution"));
    this.#sliceDelayMs = Math.max(SLICE_DELAY_MS, deps.options.endpoints.sliceBatchMs);
    this.#caches = caches;
    this.#metrics = new EndpointSliceMetrics(deps.options.endpoints.perSlice, deps.registry);
  }

  nodeChanged(node: Node, before: Node | undefined): void {
    const zoneOf = ({ metadata }: Node): string => metadata?.labels?.[ZONE] ?? "";
    if (before !== undefined && isNodeReady(before) === isNodeReady(node) && zoneOf(before) === zoneOf(node)) return;
    this.nodesChanged();
  }

  nodesChanged(): void {
    this.#hints.setNodes(this.#caches.nodes.list());
    for (const key of this.#hints.overloadedServices()) this.queue?.add(key);
  }

  sliceChanged(slice: EndpointSlice, before: EndpointSlice | undefined): void {
    for (const each of this.#tracker.affectedBy(slice, before, isManaged)) this.#enqueue(each);
  }

  sliceDeleted(slice: EndpointSlice): void {
    if (isManaged(slice) && this.#tracker.deleted(slice)) this.#enqueue(slice);
  }

  #enqueue(slice: EndpointSlice): void {
    if (serviceNameOf(slice) !== "") this.queue?.addAfter(keyOfService(slice), this.#sliceDelayMs);
  }

  async sync(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const service = this.#caches.services.get(name, namespace);
    if (service === undefined) {
      this.#times.delete(key);
      this.#tracker.deleteService(key);
      this.#hints.deleteService(key);
      this.#metrics.deleteService(key);
      return;
    }
    if (service.spec?.type === "ExternalName" || selectorOf(service) === undefined) return;
    const slices = this.#caches.slicesByService
      .withAll(namespace, { [SERVICE_NAME]: name, [MANAGED_BY]: SLICE_CONTROLLER })
      .filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
    if (this.#tracker.isStale(key, slices)) {
      this.#metrics.recordSync("stale");
      throw new Error("EndpointSlice informer cache is out of date");
    }
    const pods = this.#caches.servicePods.podsOf(service);
    const time = this.#times.next(key, service, pods);
    const events: HintEvent[] = [];
    const { byType, errors } = reconcileSlices({
      max: this.#deps.options.endpoints.perSlice,
      service,
      pods,
      slices,
      findNode: (node) => this.#caches.nodes.get(node),
      assignHints: (of, type, drafts) => void events.push(...this.#hints.assign(of, type, drafts)),
    });
    const failures: unknown[] = [...errors];
    try {
      // The slices of the other IP family do not depend on those that cannot be written.
      for (const changes of byType) {
        try {
          await this.#write(service, changes, time, signal);
        } catch (error) {
          if (signal.aborted) throw error;
          failures.push(error);
        }
      }
      const written = {
        create: byType.flatMap(({ create }) => create),
        update: byType.flatMap(({ update }) => update),
        delete: byType.flatMap((changes) => changes.delete),
      };
      this.#metrics.recordServiceWrites(key, service, slices, written);
      for (const { type, reason, message } of events) this.#record(service, type, reason, message);
      if (failures.length > 0) throw aggregate(failures);
      this.#metrics.recordSync("success");
    } catch (error) {
      this.#metrics.recordSync("error");
      const message = `Error updating Endpoint Slices for Service ${key}: ${messageOf(error)}`;
      if (!signal.aborted) this.#record(service, "Warning", "FailedToUpdateEndpointSlices", message);
      throw error;
    }
  }

  #record(service: Service, type: "Normal" | "Warning", reason: string, message: string): void {
    this.#caches.recorder.record(objectReference({ ...service, ...SERVICE_TYPE }), type, reason, message);
  }

  async #write(service: Service, changes: SliceChanges, time: string | undefined, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const key = keyOf(service);
    const annotate = (slice: EndpointSlice): EndpointSlice => ({
      ...slice,
      metadata: { ...slice.metadata, annotations: withTriggerTime(slice.metadata?.annotations, time) },
    });
    // The garbage collector deletes the slices of a deleted service.
    for (const slice of service.metadata?.deletionTimestamp === undefined ? changes.create : []) {
      try {
        this.#tracker.written(await client.create(endpointSliceKind, annotate(slice), signal));
      } catch (error) {
        if (isNamespaceTerminating(error)) return;
        throw failure(`failed to create EndpointSlice for Service ${key}`, error);
      }
    }
    for (const slice of changes.update) {
      try {
        this.#tracker.written(await client.update(endpointSliceKind, annotate(slice), signal));
      } catch (error) {
        throw failure(`failed to update ${slice.metadata?.name} EndpointSlice for Service ${key}`, error);
      }
    }
    for (const slice of changes.delete) {
      const { name = "", namespace } = slice.metadata ?? {};
      // The informer may deliver the deletion before the response arrives.
      this.#tracker.expectDeletion(slice);
      try {
        await client.delete(endpointSliceKind, { name, namespace }, {}, signal);
      } catch (error) {
        this.#tracker.written(slice);
        if (statusCodeOf(error) === 404) continue;
        throw failure(`failed to delete ${name} EndpointSlice for Service ${key}`, error);
      }
    }
  }
}

const SERVICE_TYPE = { apiVersion: "v1", kind: "Service" };

/** As Kubernetes prints several errors. */
function aggregate(failures: readonly unknown[]): unknown {
  const messages = failures.map(messageOf);
  const [first] = failures;
  if (messages.length === 1 && first instanceof Error) return first;
  return new Error(messages.length === 1 ? messages[0] : `[${messages.join(", ")}]`);
}

function failure(message: string, cause: unknown): Error {
  return new Error(`${message}: ${messageOf(cause)}`, { cause });
}

function isManaged({ metadata }: EndpointSlice): boolean {
  return metadata?.labels?.[MANAGED_BY] === SLICE_CONTROLLER;
}
