/** The Endpoints controller: the addresses of each service with a selector, as Endpoints. */

import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import type { EndpointAddress, EndpointPort, EndpointSubset, Endpoints } from "../../api/core/endpoints/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { formatIp, parseIp } from "../../std/net/ip.ts";
import { statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue, RATE_LIMITER } from "../controller-queue.ts";
import { isPodReady } from "../workload/active-pods.ts";
import { keyOf, objectReference, splitKey } from "../workload/object-keys.ts";
import { isNamespaceTerminating, messageOf } from "../workload/pod-control.ts";
import { exceedsCapacity, repackSubsets, truncateSubsets } from "./endpoint-subsets.ts";
import { LEADER_ELECTION } from "./is-mirrored.ts";
import { PortResolver, type ResolvedPort } from "./port-resolver.ts";
import { addressesOf, hasServiceHostname, isEndpoint, isHeadless, ServicePods, selectorOf } from "./service-pods.ts";
import { addressTypesOf, HEADLESS } from "./slice-reconciler.ts";
import { TriggerTimes, withTriggerTime } from "./trigger-times.ts";

const MANAGED_BY = "endpoints.kubernetes.io/managed-by";
const CONTROLLER = "endpoint-controller";
const OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity";

export async function runEndpointsController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers, options } = deps;
  const services = informers.of(serviceKind);
  const pods = informers.of(podKind);
  const endpoints = informers.of(endpointsKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: CONTROLLER });
  using servicePods = new ServicePods(pods, services);
  const controller = new EndpointsController(deps, { services, endpoints, servicePods, recorder });
  await using queue = createControllerQueue(deps, {
    name: "endpoint",
    workers: 5,
    backoff: RATE_LIMITER,
    sync: (key, stopping) => controller.sync(key, stopping),
    onError: (key, error) => log.v(2)?.info("Failed to sync endpoints, will retry", { key, error: String(error) }),
  });
  await waitForCacheSync([services, pods, endpoints], signal);
  using subscriptions = new DisposableStack();
  const addAll = (keys: Iterable<string>): void => {
    for (const key of keys) queue.addAfter(key, options.endpoints.endpointsBatchMs);
  };
  subscriptions.defer(
    services.subscribe({ put: (service) => queue.add(keyOf(service)), delete: (service) => queue.add(keyOf(service)) }),
  );
  subscriptions.defer(
    pods.subscribe({
      put: (pod, before) => addAll(servicePods.affectedServices(pod, before)),
      delete: (pod) => addAll(servicePods.affectedServices(pod, undefined)),
    }),
  );
  subscriptions.defer(endpoints.subscribe({ delete: (deleted) => queue.add(keyOf(deleted)) }));
  // Their services may have been deleted while no controller ran.
  for (const left of endpoints.list()) {
    if (left.metadata?.annotations?.[LEADER_ELECTION] !== undefined) continue;
    controller.leftovers.add(keyOf(left));
    queue.add(keyOf(left));
  }
  await waitForAbort(signal);
}

interface Caches {
  readonly services: Informer<Service>;
  readonly endpoints: Informer<Endpoints>;
  readonly servicePods: ServicePods;
  readonly recorder: EventRecorder;
}

class EndpointsController {
  /** Endpoints that were there at the start: the list of services may be older than that of endpoints. */
  readonly leftovers = new Set<string>();
  readonly #deps: ControllerDeps;
  readonly #caches: Caches;
  readonly #times = new TriggerTimes();
  /** The versions that the controller has replaced, by service. */
  readonly #replaced = new Map<string, string>();

  constructor(deps: ControllerDeps, caches: Caches) {
    this.#deps = deps;
    this.#caches = caches;
  }

  async sync(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const service = this.#caches.services.get(name, namespace);
    if (service === undefined) {
      const isServed = this.leftovers.has(key) && (await this.#readService(key, signal)) !== undefined;
      this.leftovers.delete(key);
      if (!isServed) await this.#delete(key, signal);
      return;
    }
    if (service.spec?.type === "ExternalName" || selectorOf(service) === undefined) return;
    const pods = this.#caches.servicePods.podsOf(service);
    const time = this.#times.next(key, service, pods);
    const resolver = new PortResolver(service.spec?.ports ?? [], toSubsetPorts);
    const skipped: string[] = [];
    const subsets = repackSubsets(pods.flatMap((pod) => subsetsOf(service, pod, resolver, skipped)));
    if (skipped.length > 0) this.#recordSkipped(service, skipped);
    const current = this.#caches.endpoints.get(name, namespace);
    const version = current?.metadata?.resourceVersion ?? "";
    if (current !== undefined && this.#replaced.get(key) === version) {
      throw new Error(`endpoints informer cache is out of date, resource version ${version} already processed`);
    }
    if (current !== undefined && isUpToDate(current, service, subsets)) return;
    await this.#write(desiredEndpoints(current, service, subsets, time), current, signal);
  }

  #recordSkipped(service: Service, pods: readonly string[]): void {
    const message = `skipping ${pods.length} pods, first ${pods[0]}: too many different ports`;
    this.#caches.recorder.record(objectReference(service), "Warning", "FailedToUpdateEndpoint", message);
  }

  async #readService(key: string, signal: AbortSignal): Promise<Service | undefined> {
    try {
      return await this.#deps.client.get(serviceKind, splitKey(key), signal);
    } catch (error) {
      if (statusCodeOf(error) === 404) return undefined;
      throw error;
    }
  }

  async #delete(key: string, signal: AbortSignal): Promise<void> {
    this.#times.delete(key);
    this.#replaced.delete(key);
    const { namespace, name } = splitKey(key);
    if (this.#caches.endpoints.get(name, namespace) === undefined) return;
    try {
      await this.#deps.client.delete(endpointsKind, { name, namespace }, {}, signal);
    } catch (error) {
      if (statusCodeOf(error) !== 404) throw error;
    }
  }

  async #write(desired: Endpoints, current: Endpoints | undefined, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const key = keyOf(desired);
    try {
      if (current === undefined) {
        await client.create(endpointsKind, desired, signal);
        return;
      }
      const updated = await client.update(endpointsKind, desired, signal);
      const version = current.metadata?.resourceVersion ?? "";
      if (updated.metadata?.resourceVersion !== version) this.#replaced.set(key, version);
    } catch (error) {
      if (current === undefined && isNamespaceTerminating(error)) return;
      if (!signal.aborted) {
        const [reason, message] =
          current === undefined
            ? ["FailedToCreateEndpoint", `Failed to create endpoint for service ${key}: ${messageOf(error)}`]
            : ["FailedToUpdateEndpoint", `Failed to update endpoint ${key}: ${messageOf(error)}`];
        const about = objectReference({ ...desired, apiVersion: "v1", kind: "Endpoints" });
        this.#caches.recorder.record(about, "Warning", reason, message);
      }
      throw error;
    }
  }
}

/** None or one. Adds the names of pods with too many different ports to `skipped`. */
function subsetsOf(
  service: Service,
  pod: Pod,
  resolver: PortResolver<readonly EndpointPort[]>,
  skipped: string[],
): readonly EndpointSubset[] {
  const { publishNotReadyAddresses = false, ports = [], clusterIP } = service.spec ?? {};
  if (!isEndpoint(pod, publishNotReadyAddresses)) return [];
  const address = addressOf(service, pod);
  if (address === undefined) return [];
  const isReady = publishNotReadyAddresses || isPodReady(pod);
  const addresses = isReady ? { addresses: [address] } : { notReadyAddresses: [address] };
  if (ports.length === 0) return clusterIP === "None" ? [addresses] : [];
  const resolved = resolver.portsOf(pod);
  if (resolved === undefined) skipped.push(pod.metadata?.name ?? "");
  return resolved === undefined || resolved.length === 0 ? [] : [{ ...addresses, ports: resolved }];
}

function toSubsetPorts(resolved: readonly ResolvedPort[]): readonly EndpointPort[] {
  return resolved.map(({ servicePort: { name = "", protocol = "TCP", appProtocol }, port }) => ({
    ...(name === "" ? {} : { name }),
    port,
    protocol,
    ...(appProtocol === undefined ? {} : { appProtocol }),
  }));
}

function addressOf(service: Service, pod: Pod): EndpointAddress | undefined {
  const [family] = addressTypesOf(service);
  const found = addressesOf(pod).map(parseIp);
  const address = found.find((one) => one?.family === family);
  if (address === undefined) return undefined;
  const { name, namespace, uid } = pod.metadata ?? {};
  return {
    ip: formatIp(address),
    ...(hasServiceHostname(pod, service) ? { hostname: pod.spec?.hostname } : {}),
    nodeName: pod.spec?.nodeName ?? "",
    targetRef: { kind: "Pod", namespace, name, uid },
  };
}

function isUpToDate(
  { metadata, subsets = [] }: Endpoints,
  service: Service,
  wanted: readonly EndpointSubset[],
): boolean {
  const { labels = {}, annotations = {} } = metadata ?? {};
  return (
    labels[MANAGED_BY] === CONTROLLER &&
    deepEqual(withoutOwn(labels), withoutOwn(service.metadata?.labels ?? {})) &&
    !exceedsCapacity(subsets) &&
    annotations[OVER_CAPACITY] === undefined &&
    deepEqual(subsets, wanted)
  );
}

function withoutOwn(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { [MANAGED_BY]: _, [HEADLESS]: __, ...rest } = labels;
  return rest;
}

function desiredEndpoints(
  current: Endpoints | undefined,
  service: Service,
  subsets: readonly EndpointSubset[],
  time: string | undefined,
): Endpoints {
  const { name, namespace, labels = {} } = service.metadata ?? {};
  const isTruncated = exceedsCapacity(subsets);
  const { [OVER_CAPACITY]: _, ...annotations } = withTriggerTime(current?.metadata?.annotations, time) ?? {};
  return {
    ...current,
    metadata: {
      ...(current?.metadata ?? { name, namespace }),
      labels: {
        ...withoutOwn(labels),
        [MANAGED_BY]: CONTROLLER,
        ...(isHeadless(service) ? { [HEADLESS]: "" } : {}),
      },
      annotations: isTruncated ? { ...annotations, [OVER_CAPACITY]: "truncated" } : annotations,
    },
    subsets: isTruncated ? truncateSubsets(subsets) : subsets,
  };
}
