/** What DNS needs of Services and EndpointSlices, by namespace and name. Names are in lower case already. */
import type { Service } from "../../api/core/service/schema.ts";
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";

export interface PortRecord {
  /** "" for a port without a name, which has no SRV record of its own. */
  readonly name: string;
  /** In lower case: `tcp`. */
  readonly protocol: string;
  readonly port: number;
}

export interface EndpointRecord {
  readonly addresses: readonly string[];
  /** Undefined: the endpoint's name is derived from its address. */
  readonly hostname: string | undefined;
}

export interface SliceRecord {
  readonly family: "IPv4" | "IPv6";
  /** Those that are ready. */
  readonly endpoints: readonly EndpointRecord[];
  readonly ports: readonly PortRecord[];
}

export interface ServiceRecord {
  /** Undefined: a headless service, or one of type ExternalName. */
  readonly clusterIps: readonly string[] | undefined;
  readonly externalName: string | undefined;
  readonly ports: readonly PortRecord[];
}

/** A service with its slices; either may come first. */
export interface ServiceEntry {
  readonly namespace: string;
  readonly name: string;
  service: ServiceRecord | undefined;
  readonly slices: Map<string, SliceRecord>;
}

const SERVICE_NAME = "kubernetes.io/service-name";
const PORT_MAX = 0xffff;

export class ClusterRecords {
  readonly #namespaces = new Map<string, Map<string, ServiceEntry>>();
  /** Entries by cluster address and by addresses of headless endpoints, with how often they have the address. */
  readonly #byAddress = new Map<string, Map<ServiceEntry, number>>();

  find(namespace: string, name: string): ServiceEntry | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  /** Whether the namespace has a service. */
  hasNamespace(namespace: string): boolean {
    return this.#namespaces.has(namespace);
  }

  /** The services that have the address, and the headless ones that have an endpoint with it. */
  findByAddress(address: string): Iterable<ServiceEntry> {
    return this.#byAddress.get(address)?.keys() ?? [];
  }

  *entries(): IterableIterator<ServiceEntry> {
    for (const services of this.#namespaces.values()) yield* services.values();
  }

  putService({ metadata, spec }: Service): void {
    const { namespace = "", name = "" } = metadata ?? {};
    const { clusterIPs = [], clusterIP, type, externalName, ports = [] } = spec ?? {};
    const all = clusterIPs.length > 0 || clusterIP === undefined ? clusterIPs : [clusterIP];
    const ips = all.filter((ip) => ip !== "" && ip !== "None");
    this.setService(namespace, name, {
      clusterIps: type === "ExternalName" || ips.length === 0 ? undefined : ips,
      externalName: type === "ExternalName" ? normalizeName(externalName ?? "") : undefined,
      ports: ports.map(({ name: portName = "", protocol = "TCP", port }) => toPort(portName, protocol, port)),
    });
  }

  setService(namespace: string, name: string, service: ServiceRecord | undefined): void {
    const entry = this.#entry(namespace, name);
    this.#removeAddresses(indexedAddresses(entry), entry);
    entry.service = service;
    this.#addAddresses(indexedAddresses(entry), entry);
    this.#keep(entry);
  }

  deleteService({ metadata }: Service): void {
    this.setService(metadata?.namespace ?? "", metadata?.name ?? "", undefined);
  }

  /** `previous`: the same slice before, which may have belonged to another service. */
  putSlice(slice: EndpointSlice, previous: EndpointSlice | undefined): void {
    const [name, before] = [serviceOf(slice), previous && serviceOf(previous)];
    if (previous !== undefined && before !== name) this.deleteSlice(previous);
    const { addressType, endpoints, ports, metadata } = slice;
    if (name === undefined || addressType === "FQDN") return;
    this.setSlice(metadata?.namespace ?? "", name, metadata?.name ?? "", {
      family: addressType === "IPv6" ? "IPv6" : "IPv4",
      endpoints: (endpoints ?? [])
        // An endpoint is ready when the condition is absent.
        .filter(({ conditions }) => conditions?.ready !== false)
        .map(({ addresses, hostname }) => ({ addresses, hostname: hostname || undefined })),
      ports: (ports ?? [])
        // Kubernetes validates no range.
        .filter(({ port = -1 }) => port >= 0 && port <= PORT_MAX)
        .map(({ name: portName = "", protocol = "TCP", port = 0 }) => toPort(portName, protocol, port)),
    });
  }

  /** Takes time for the endpoints of this slice only: a service may have thousands of others. */
  setSlice(namespace: string, service: string, slice: string, record: SliceRecord | undefined): void {
    const entry = this.#entry(namespace, service);
    const previous = entry.slices.get(slice);
    if (previous !== undefined && hasIndexedEndpoints(entry)) this.#removeAddresses(addressesOf(previous), entry);
    if (record === undefined) entry.slices.delete(slice);
    else entry.slices.set(slice, record);
    if (record !== undefined && hasIndexedEndpoints(entry)) this.#addAddresses(addressesOf(record), entry);
    this.#keep(entry);
  }

  deleteSlice(slice: EndpointSlice): void {
    const service = serviceOf(slice);
    if (service === undefined) return;
    this.setSlice(slice.metadata?.namespace ?? "", service, slice.metadata?.name ?? "", undefined);
  }

  #entry(namespace: string, name: string): ServiceEntry {
    return this.find(namespace, name) ?? { namespace, name, service: undefined, slices: new Map() };
  }

  /** Keeps the changed entry, unless nothing is left of it. */
  #keep(entry: ServiceEntry): void {
    const { namespace, name } = entry;
    const services = this.#namespaces.get(namespace) ?? new Map<string, ServiceEntry>();
    if (entry.service === undefined && entry.slices.size === 0) {
      services.delete(name);
      if (services.size === 0) this.#namespaces.delete(namespace);
      return;
    }
    services.set(name, entry);
    this.#namespaces.set(namespace, services);
  }

  #addAddresses(addresses: Iterable<string>, entry: ServiceEntry): void {
    for (const address of addresses) {
      const entries = this.#byAddress.get(address) ?? new Map<ServiceEntry, number>();
      entries.set(entry, (entries.get(entry) ?? 0) + 1);
      this.#byAddress.set(address, entries);
    }
  }

  #removeAddresses(addresses: Iterable<string>, entry: ServiceEntry): void {
    for (const address of addresses) {
      const entries = this.#byAddress.get(address);
      const count = (entries?.get(entry) ?? 0) - 1;
      if (count > 0) entries?.set(entry, count);
      else if (entries?.delete(entry) === true && entries.size === 0) this.#byAddress.delete(address);
    }
  }
}

/** Whether names of the service are those of its endpoints. */
export function isHeadless(service: ServiceRecord): boolean {
  return service.clusterIps === undefined && service.externalName === undefined;
}

function* indexedAddresses(entry: ServiceEntry): IterableIterator<string> {
  yield* entry.service?.clusterIps ?? [];
  if (!hasIndexedEndpoints(entry)) return;
  for (const slice of entry.slices.values()) yield* addressesOf(slice);
}

function hasIndexedEndpoints({ service }: ServiceEntry): boolean {
  return service !== undefined && isHeadless(service);
}

function* addressesOf({ endpoints }: SliceRecord): IterableIterator<string> {
  for (const { addresses } of endpoints) yield* addresses;
}

function serviceOf({ metadata }: EndpointSlice): string | undefined {
  return metadata?.labels?.[SERVICE_NAME];
}

function toPort(name: string, protocol: string, port: number): PortRecord {
  return { name, protocol: protocol.toLowerCase(), port };
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}
