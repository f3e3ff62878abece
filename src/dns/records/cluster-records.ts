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

export class ClusterRecords {
  readonly #namespaces = new Map<string, Map<string, ServiceEntry>>();
  /** Entries by cluster address and by addresses of headless endpoints. */
  readonly #byAddress = new Map<string, Set<ServiceEntry>>();

  find(namespace: string, name: string): ServiceEntry | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  /** Whether the namespace has a service. */
  hasNamespace(namespace: string): boolean {
    return this.#namespaces.has(namespace);
  }

  /** The services that have the address, and the headless ones that have an endpoint with it. */
  findByAddress(address: string): Iterable<ServiceEntry> {
    return this.#byAddress.get(address) ?? [];
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
    this.#change(namespace, name, (entry) => {
      entry.service = service;
    });
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
        .filter((each) => each.port !== undefined)
        .map(({ name: portName = "", protocol = "TCP", port = 0 }) => toPort(portName, protocol, port)),
    });
  }

  setSlice(namespace: string, service: string, slice: string, record: SliceRecord | undefined): void {
    this.#change(namespace, service, ({ slices }) => {
      if (record === undefined) slices.delete(slice);
      else slices.set(slice, record);
    });
  }

  deleteSlice(slice: EndpointSlice): void {
    const service = serviceOf(slice);
    if (service === undefined) return;
    this.setSlice(slice.metadata?.namespace ?? "", service, slice.metadata?.name ?? "", undefined);
  }

  #change(namespace: string, name: string, apply: (entry: ServiceEntry) => void): void {
    const services = this.#namespaces.get(namespace) ?? new Map<string, ServiceEntry>();
    const entry = services.get(name) ?? { namespace, name, service: undefined, slices: new Map() };
    for (const address of indexedAddresses(entry)) this.#removeAddress(address, entry);
    apply(entry);
    if (entry.service === undefined && entry.slices.size === 0) {
      services.delete(name);
      if (services.size === 0) this.#namespaces.delete(namespace);
      return;
    }
    services.set(name, entry);
    this.#namespaces.set(namespace, services);
    for (const address of indexedAddresses(entry)) this.#addAddress(address, entry);
  }

  #addAddress(address: string, entry: ServiceEntry): void {
    const entries = this.#byAddress.get(address);
    if (entries === undefined) this.#byAddress.set(address, new Set([entry]));
    else entries.add(entry);
  }

  #removeAddress(address: string, entry: ServiceEntry): void {
    const entries = this.#byAddress.get(address);
    if (entries?.delete(entry) === true && entries.size === 0) this.#byAddress.delete(address);
  }
}

/** Whether names of the service are those of its endpoints. */
export function isHeadless(service: ServiceRecord): boolean {
  return service.clusterIps === undefined && service.externalName === undefined;
}

function* indexedAddresses({ service, slices }: ServiceEntry): IterableIterator<string> {
  if (service === undefined) return;
  if (service.clusterIps !== undefined) yield* service.clusterIps;
  if (!isHeadless(service)) return;
  for (const { endpoints } of slices.values()) for (const { addresses } of endpoints) yield* addresses;
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
