/** Which pods a service selects, and which services select a pod. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { isPodReady } from "../workload/active-pods.ts";
import { keyOf } from "../workload/object-keys.ts";
import { includesLabels, LabelIndex } from "./label-index.ts";

export class ServicePods implements Disposable {
  readonly #pods: LabelIndex<Pod>;
  readonly #services: LabelIndex<Service>;

  constructor(pods: Informer<Pod>, services: Informer<Service>) {
    this.#pods = new LabelIndex(pods, ({ metadata }) => metadata?.labels ?? {});
    // One label of the selector suffices to find the service by the labels of a pod.
    this.#services = new LabelIndex(services, (service) =>
      Object.fromEntries(Object.entries(selectorOf(service) ?? {}).slice(0, 1)),
    );
  }

  podsOf(service: Service): readonly Pod[] {
    return this.#pods.withAll(service.metadata?.namespace ?? "", selectorOf(service) ?? {});
  }

  /** The keys of the services whose endpoints a change of the pod may affect; `before` is undefined for a new pod. */
  affectedServices(pod: Pod, before: Pod | undefined): ReadonlySet<string> {
    const now = this.#servicesOf(pod);
    if (before === undefined) return now;
    const isChanged = changesEndpoint(before, pod);
    if (!changesMembership(before, pod)) return isChanged ? now : new Set();
    const then = this.#servicesOf(before);
    const all = [...now, ...then];
    return new Set(isChanged ? all : all.filter((key) => !now.has(key) || !then.has(key)));
  }

  [Symbol.dispose](): void {
    this.#pods[Symbol.dispose]();
    this.#services[Symbol.dispose]();
  }

  #servicesOf({ metadata }: Pod): ReadonlySet<string> {
    const labels = metadata?.labels ?? {};
    const candidates = this.#services.withAny(metadata?.namespace ?? "", labels);
    return new Set(candidates.filter((service) => includesLabels(labels, selectorOf(service) ?? {})).map(keyOf));
  }
}

/** Undefined for a service whose endpoints are not made from pods. An empty selector is stored as none. */
export function selectorOf({ spec }: Service): Readonly<Record<string, string>> | undefined {
  const selector = spec?.selector;
  return selector === undefined || Object.keys(selector).length === 0 ? undefined : selector;
}

function changesMembership(before: Pod, pod: Pod): boolean {
  const { hostname, subdomain } = before.spec ?? {};
  return (
    !deepEqual(before.metadata?.labels ?? {}, pod.metadata?.labels ?? {}) ||
    hostname !== pod.spec?.hostname ||
    subdomain !== pod.spec?.subdomain
  );
}

function changesEndpoint(before: Pod, pod: Pod): boolean {
  return (
    before.metadata?.deletionTimestamp !== pod.metadata?.deletionTimestamp ||
    isPodReady(before) !== isPodReady(pod) ||
    isFinished(before) !== isFinished(pod) ||
    addressesOf(before).join() !== addressesOf(pod).join()
  );
}

function isFinished({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** The addresses of the pod, in its order of families. */
export function addressesOf({ status }: Pod): readonly string[] {
  return (status?.podIPs ?? []).map(({ ip }) => ip ?? "");
}

/** Whether the pod has an address and is not finished; a terminating pod only on request. */
export function isEndpoint(pod: Pod, includesTerminating: boolean): boolean {
  if (isFinished(pod)) return false;
  if ((pod.status?.podIP ?? "") === "" && addressesOf(pod).length === 0) return false;
  return includesTerminating || pod.metadata?.deletionTimestamp === undefined;
}

/** Whether the pod has a DNS name of its own below the service's. */
export function hasServiceHostname({ metadata, spec }: Pod, service: Service): boolean {
  return (
    (spec?.hostname ?? "") !== "" &&
    spec?.subdomain === service.metadata?.name &&
    metadata?.namespace === service.metadata?.namespace
  );
}

export function isHeadless({ spec }: Service): boolean {
  return spec?.clusterIP === "None" || spec?.clusterIP === undefined || spec.clusterIP === "";
}
