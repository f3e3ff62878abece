/**
 * Publishes the addresses of the running API servers as endpoints of the kubernetes service. Type `lease`: each server
 * renews a key that expires. Type `master-count`: each server adds its address and removes it at shutdown; that of a
 * server that crashed stays. Type `none`: no reconciliation.
 */

import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import type { Endpoints } from "../../api/core/endpoints/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { remove } from "../../registry/delete.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Scope } from "../../registry/scope.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { parseIp } from "../../std/net/ip.ts";
import { ObjectStore } from "../../storage/object-store.ts";
import type { EndpointReconcilerType } from "../config/config.ts";
import { ensure, ignoreConflict, systemScope } from "./ensure.ts";
import { isApiService, KUBERNETES_SERVICE } from "./kubernetes-service.ts";

export interface EndpointReconcilerOptions {
  readonly type: EndpointReconcilerType;
  /** The address at which other hosts reach this server. */
  readonly address: string;
  readonly port: number;
  /** The services of the API: `kubernetes`. */
  readonly serviceNames: readonly string[];
}

const NAMESPACE = "default";
const PORT_NAME = "https";
const LEASE_SECONDS = 15;
/** Keeps the EndpointSlice mirroring controller from copying the Endpoints: this server writes the slice itself. */
const SKIP_MIRROR = { "endpointslice.kubernetes.io/skip-mirror": "true" };

export class EndpointReconciler {
  readonly #registries: Registries;
  readonly #options: EndpointReconcilerOptions;
  readonly #signal: AbortSignal;
  readonly #leases: ObjectStore<Endpoints>;
  /** Set until this server has published its port once: servers with different ports do not write in turns. */
  #setsPorts = true;

  constructor(registries: Registries, options: EndpointReconcilerOptions, signal: AbortSignal) {
    this.#registries = registries;
    this.#options = options;
    this.#signal = signal;
    const kind = { ...endpointsKind, namespaced: false, storageName: "masterleases" };
    this.#leases = new ObjectStore({ ...registries.deps, kind });
  }

  /** The store keys of the published objects. */
  get keys(): readonly string[] {
    const kinds = this.#options.type === "none" ? [] : [endpointsKind, endpointSliceKind];
    return kinds.flatMap((kind) => {
      return this.#options.serviceNames.map((name) =>
        this.#registries.of<ApiObject>(kind).objects.key(NAMESPACE, name),
      );
    });
  }

  async reconcile(): Promise<void> {
    const { type, address } = this.#options;
    if (type === "none") return;
    if (type === "lease") await this.#renewLease();
    const live = type === "lease" ? await this.#leasedAddresses() : [...(await this.#publishedAddresses()), address];
    await this.#publish([...new Set(live)].sort());
    this.#setsPorts = false;
  }

  /** Removes this server from the endpoints at shutdown, unless it is the last one. */
  async withdraw(): Promise<void> {
    const { type, address } = this.#options;
    if (type === "none") return;
    if (type === "lease") await ignoreConflict(this.#leases.delete(this.#leaseKey()));
    const live = type === "lease" ? await this.#leasedAddresses() : await this.#publishedAddresses();
    const others = live.filter((each) => each !== address);
    if (others.length > 0) await this.#publish([...new Set(others)].sort());
  }

  #leaseKey(): string {
    return this.#leases.key(undefined, this.#options.address);
  }

  async #renewLease(): Promise<void> {
    const { address } = this.#options;
    const key = this.#leaseKey();
    const subsets = [{ addresses: [{ ip: address }] }];
    const ttlSeconds = LEASE_SECONDS;
    const existing = await this.#leases.get(key);
    // The generation makes each write a change, which renews the time to live.
    const generation = (existing?.metadata?.generation ?? 0) + 1;
    const lease: Endpoints = { metadata: { name: address, generation }, subsets };
    if (existing === undefined) await ignoreConflict(this.#leases.create(key, lease, { ttlSeconds }));
    else await ignoreConflict(this.#leases.guaranteedUpdate(key, () => lease, { ttlSeconds: () => ttlSeconds }));
  }

  async #leasedAddresses(): Promise<string[]> {
    const { items } = await this.#leases.list(this.#leases.prefix());
    return items.flatMap(({ subsets = [] }) => subsets.flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip)));
  }

  async #publishedAddresses(): Promise<readonly string[]> {
    const registry = this.#registries.of(endpointsKind);
    const found = await registry.objects.get(registry.key(systemScope(NAMESPACE, this.#signal), KUBERNETES_SERVICE));
    return (found?.subsets ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip));
  }

  async #publish(addresses: readonly string[]): Promise<void> {
    const services = this.#registries.of(serviceKind).objects;
    for (const name of this.#options.serviceNames) {
      const service = await services.get(services.key(NAMESPACE, name));
      // The service reconciler recreates a missing service.
      if (service === undefined || isApiService(service)) await this.#publishFor(name, addresses);
    }
  }

  async #publishFor(name: string, addresses: readonly string[]): Promise<void> {
    const scope = systemScope(NAMESPACE, this.#signal);
    const own = [{ name: PORT_NAME, port: this.#options.port, protocol: "TCP" as const }];
    const members = addresses.map((ip) => ({ ip }));
    let ports = own;
    const endpoints: Endpoints = {
      metadata: { name, namespace: NAMESPACE, labels: SKIP_MIRROR },
      subsets: [{ addresses: members, ports }],
    };
    await ensure(this.#registries.of(endpointsKind), scope, endpoints, (found) => {
      const labelled = found.metadata?.labels?.["endpointslice.kubernetes.io/skip-mirror"] === "true";
      const [first, second] = found.subsets ?? [];
      const published = second === undefined ? first?.ports : undefined;
      if (!this.#setsPorts && published !== undefined) ports = published as typeof own;
      const subsets = [{ addresses: members, ports }];
      if (labelled && deepEqual(found.subsets, subsets)) return undefined;
      return {
        ...found,
        metadata: { ...found.metadata, labels: { ...found.metadata?.labels, ...SKIP_MIRROR } },
        subsets,
      };
    });
    await this.#publishSlice(sliceOf(name, addresses, ports), scope);
  }

  async #publishSlice(slice: EndpointSlice, scope: Scope): Promise<void> {
    const registry = this.#registries.of(endpointSliceKind);
    const { name = "", labels } = slice.metadata ?? {};
    const found = await registry.objects.get(registry.key(scope, name));
    // The type of addresses cannot be changed.
    if (found !== undefined && found.addressType !== slice.addressType)
      await ignoreConflict(remove(registry, scope, name, { preconditions: { uid: found.metadata?.uid } }));
    await ensure(registry, scope, slice, (current) => {
      const { endpoints, ports } = slice;
      if (
        deepEqual(current.endpoints, endpoints) &&
        deepEqual(current.ports, ports) &&
        deepEqual(current.metadata?.labels, labels)
      )
        return undefined;
      return { ...current, metadata: { ...current.metadata, labels }, endpoints, ports };
    });
  }
}

/** As in Kubernetes: IPv6 when all addresses are, or else its IPv4 addresses. */
function sliceOf(name: string, addresses: readonly string[], ports: EndpointSlice["ports"]): EndpointSlice {
  const family = addresses.every((address) => parseIp(address)?.family === "IPv6") ? "IPv6" : "IPv4";
  const members = addresses.filter((address) => parseIp(address)?.family === family);
  return {
    metadata: { name, namespace: NAMESPACE, labels: { "kubernetes.io/service-name": name } },
    addressType: family,
    endpoints: members.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports,
  };
}
