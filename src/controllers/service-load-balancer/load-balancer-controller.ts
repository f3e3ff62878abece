/**
 * Load balancers without a cloud: services of type LoadBalancer get the addresses of the nodes, where the service
 * proxy accepts their ports. A service whose port is taken gets none, and an event.
 */

import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { LoadBalancerIngress, Service } from "../../api/core/service/schema.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { compareCreation, keyOf, objectReference } from "../workload/object-keys.ts";
import { claimPorts, hostPortsOf, reservedPorts } from "./port-claims.ts";

const EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers";
const SERVICE_NAME = "kubernetes.io/service-name";
/** Ports are distributed among all services, so they are synced together. */
const ALL = "all";

export async function runLoadBalancerController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const services = informers.of(serviceKind);
  const nodes = informers.of(nodeKind);
  const pods = informers.of(podKind);
  const slices = informers.of(endpointSliceKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "service-controller" });
  const controller = new LoadBalancerController(deps, { services, nodes, slices, recorder });
  await using queue = createControllerQueue(deps, {
    name: "service",
    workers: 1,
    sync: (_, stopping) => controller.sync(stopping),
    onError: (_, error) => log.v(2)?.info("Failed to sync load balancers, will retry", { error: String(error) }),
  });
  const changed = (): void => queue.add(ALL);
  await waitForCacheSync([services, nodes, pods, slices], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(services.subscribe({ put: changed, delete: changed }));
  subscriptions.defer(
    nodes.subscribe({
      put: (node, before) => {
        if (before === undefined || describeNode(before) !== describeNode(node)) changed();
      },
      delete: changed,
    }),
  );
  subscriptions.defer(
    pods.subscribe({
      put: (pod) => {
        if (controller.podChanged(pod)) changed();
      },
      delete: (pod) => {
        if (controller.podDeleted(pod)) changed();
      },
    }),
  );
  const sliceChanged = (slice: EndpointSlice): void => {
    if (controller.concernsLocal(slice)) changed();
  };
  subscriptions.defer(slices.subscribe({ put: sliceChanged, delete: sliceChanged }));
  await waitForAbort(signal);
}

/** What the addresses of load balancers depend on. */
function describeNode(node: Node): string {
  return JSON.stringify([isEligible(node), node.status?.addresses, node.status?.daemonEndpoints]);
}

function isEligible({ metadata, status }: Node): boolean {
  const isReady = status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
  return isReady && metadata?.deletionTimestamp === undefined && metadata?.labels?.[EXCLUDED] === undefined;
}

interface Caches {
  readonly services: Informer<Service>;
  readonly nodes: Informer<Node>;
  readonly slices: Informer<EndpointSlice>;
  readonly recorder: EventRecorder;
}

class LoadBalancerController {
  readonly #deps: ControllerDeps;
  readonly #caches: Caches;
  /** By pod; only of pods that have some. */
  readonly #hostPorts = new Map<string, readonly string[]>();
  /** The last problem of each service, so that it is reported once. */
  #problems = new Map<string, string>();

  constructor(deps: ControllerDeps, caches: Caches) {
    this.#deps = deps;
    this.#caches = caches;
  }

  /** Whether the pod's host ports changed. */
  podChanged(pod: Pod): boolean {
    const key = keyOf(pod);
    const ports = hostPortsOf(pod);
    if ((this.#hostPorts.get(key) ?? []).join() === ports.join()) return false;
    if (ports.length === 0) this.#hostPorts.delete(key);
    else this.#hostPorts.set(key, ports);
    return true;
  }

  podDeleted(pod: Pod): boolean {
    return this.#hostPorts.delete(keyOf(pod));
  }

  /** Whether the slice decides which nodes are addresses of a load balancer. */
  concernsLocal({ metadata }: EndpointSlice): boolean {
    const service = this.#caches.services.get(metadata?.labels?.[SERVICE_NAME] ?? "", metadata?.namespace);
    return service !== undefined && isBalanced(service) && service.spec?.externalTrafficPolicy === "Local";
  }

  async sync(signal: AbortSignal): Promise<void> {
    const services = [...this.#caches.services.list()].sort(compareCreation);
    const nodes = [...this.#caches.nodes.list()];
    const claims = reservedPorts(services, nodes, this.#hostPorts);
    const problems = new Map<string, string>();
    for (const service of services) {
      if (!isBalanced(service)) {
        const hasStatus = (service.status?.loadBalancer?.ingress ?? []).length > 0;
        if (hasStatus && service.spec?.type !== "LoadBalancer") await this.#write(service, [], signal);
        continue;
      }
      const problem = service.metadata?.deletionTimestamp === undefined ? claimPorts(claims, service) : undefined;
      if (problem !== undefined) problems.set(keyOf(service), problem);
      await this.#ensure(service, problem, nodes, signal);
    }
    this.#problems = problems;
  }

  async #ensure(
    service: Service,
    problem: string | undefined,
    nodes: readonly Node[],
    signal: AbortSignal,
  ): Promise<void> {
    const current = describeIngress(service.status?.loadBalancer?.ingress ?? []);
    const wanted = problem === undefined ? this.#addresses(service, nodes) : [];
    if (problem !== undefined && this.#problems.get(keyOf(service)) !== problem) {
      this.#record(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer");
      this.#record(service, "Warning", "SyncLoadBalancerFailed", `Error syncing load balancer: ${problem}`);
    }
    if (current === describeIngress(wanted)) return;
    if (current === "" && wanted.length > 0)
      this.#record(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer");
    await this.#write(service, wanted, signal);
    if (wanted.length === 0) return;
    if (current === "") this.#record(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer");
    else this.#record(service, "Normal", "UpdatedLoadBalancer", "Updated load balancer with new hosts");
  }

  #record(service: Service, type: "Normal" | "Warning", reason: string, message: string): void {
    this.#caches.recorder.record(
      objectReference({ ...service, apiVersion: "v1", kind: "Service" }),
      type,
      reason,
      message,
    );
  }

  /** External addresses if nodes have some, of the families of the service, in the order of the nodes' names. */
  #addresses(service: Service, nodes: readonly Node[]): readonly LoadBalancerIngress[] {
    const families = service.spec?.ipFamilies ?? ["IPv4"];
    const local = service.spec?.externalTrafficPolicy === "Local" ? this.#nodesWithEndpoints(service) : undefined;
    const eligible = nodes
      .filter((node) => isEligible(node) && (local === undefined || local.has(node.metadata?.name ?? "")))
      .sort((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
    const all = eligible.flatMap(({ status }) => status?.addresses ?? []);
    const of = (wanted: string): readonly string[] =>
      families.flatMap((family) =>
        all
          .filter(({ type, address }) => type === wanted && address.includes(":") === (family === "IPv6"))
          .map(({ address }) => address),
      );
    const external = of("ExternalIP");
    return [...new Set(external.length > 0 ? external : of("InternalIP"))].map((ip) => ({ ip, ipMode: "VIP" }));
  }

  #nodesWithEndpoints({ metadata }: Service): ReadonlySet<string> {
    const found = new Set<string>();
    for (const slice of this.#caches.slices.list()) {
      if (slice.metadata?.namespace !== metadata?.namespace) continue;
      if (slice.metadata?.labels?.[SERVICE_NAME] !== metadata?.name) continue;
      for (const { conditions, nodeName } of slice.endpoints) {
        if (conditions?.ready !== false && nodeName !== undefined) found.add(nodeName);
      }
    }
    return found;
  }

  async #write(service: Service, ingress: readonly LoadBalancerIngress[], signal: AbortSignal): Promise<void> {
    const status = { ...service.status, loadBalancer: ingress.length === 0 ? {} : { ingress } };
    try {
      await this.#deps.client.updateStatus(serviceKind, { ...service, status }, signal);
    } catch (error) {
      // The informer delivers what changed, which starts another sync.
      if (!isNotFoundOrConflict(error)) throw error;
    }
  }
}

/** A service with a class belongs to another controller. */
function isBalanced({ spec }: Service): boolean {
  return spec?.type === "LoadBalancer" && spec.loadBalancerClass === undefined;
}

function describeIngress(ingress: readonly LoadBalancerIngress[]): string {
  return ingress.map(({ ip = "", hostname = "" }) => `${ip}${hostname}`).join();
}
