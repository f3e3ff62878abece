/** The records of the cluster's domain: the Kubernetes DNS specification 1.1.0. */
import { isIPv4, isIPv6 } from "node:net";
import { rcode, recordType } from "../wire/constants.ts";
import { isEncodableName } from "../wire/query.ts";
import { RESPONSE_RECORDS_MAX, type ResourceRecord } from "../wire/response.ts";
import {
  type ClusterRecords,
  type EndpointRecord,
  isHeadless,
  type PortRecord,
  type ServiceEntry,
  type ServiceRecord,
  type SliceRecord,
} from "./cluster-records.ts";
import { parseReverseName } from "./reverse-name.ts";

export interface ZoneOptions {
  /** `cluster.local`, in lower case */
  readonly domain: string;
  /** Of this server. */
  readonly addresses: readonly string[];
}

/** Undefined records: the name does not exist. An empty list: it has no records of the type. */
export interface ZoneAnswer {
  readonly rcode: number;
  readonly answers: readonly ResourceRecord[];
  readonly additionals: readonly ResourceRecord[];
  /** The target of a CNAME record among the answers, whose records the client expects as well. */
  readonly target?: string;
}

/** Seconds, as in CoreDNS of kubeadm. */
const TTL = 30;
const SCHEMA_VERSION = "1.1.0";
/** RFC 8482: the response to queries for all types. */
const ANY_TEXT = "RFC8482";
/** Of SOA, in seconds; changes reach this server by watching, and no other server has the zone. */
const SOA_TIMES = { refresh: 7200, retry: 1800, expire: 86_400, minimum: TTL };
const SRV_WEIGHT = 100;

const { noError, nameError } = rcode;

export class ClusterZone {
  readonly domain: string;
  readonly #suffix: string;
  readonly #addresses: readonly string[];

  constructor({ domain, addresses }: ZoneOptions) {
    this.domain = domain;
    this.#suffix = `.${domain}`;
    this.#addresses = addresses;
  }

  contains(name: string): boolean {
    return name === this.domain || name.endsWith(this.#suffix);
  }

  /** For negative answers. `serial` increases with time. */
  soa(serial: number): ResourceRecord {
    const names = { mname: `ns.dns.${this.domain}`, rname: `hostmaster.${this.domain}` };
    return { name: this.domain, type: "SOA", ttl: TTL, data: { ...names, serial, ...SOA_TIMES } };
  }

  /** `name` is in the domain. */
  resolve(records: ClusterRecords, name: string, type: number, serial: number): ZoneAnswer {
    const labels = name === this.domain ? [] : name.slice(0, -this.#suffix.length).split(".");
    const [last, ...rest] = labels.reverse();
    if (last === undefined) return this.#resolveApex(type, serial);
    const owner: Owner = { name, type };
    if (last === "svc") return this.#resolveService(records, owner, rest);
    if (last === "pod") return resolvePod(owner, rest);
    if (last === "dns-version" && rest.length === 0) {
      return found(owner, [{ name, type: "TXT", ttl: TTL, data: SCHEMA_VERSION }]);
    }
    if (last === "dns" && rest.length === 0) return found(owner, []);
    if (last === "dns" && rest.length === 1 && rest[0] === "ns")
      return found(owner, addressesOf(name, this.#addresses));
    return notFound;
  }

  /** The names of the address in the cluster; undefined when it has none. */
  resolveReverse(records: ClusterRecords, name: string, type: number): ZoneAnswer | undefined {
    const address = parseReverseName(name);
    if (address === undefined) return undefined;
    const names: string[] = [];
    for (const entry of records.findByAddress(address)) {
      const serviceName = this.#serviceName(entry);
      if (entry.service?.clusterIps !== undefined) names.push(serviceName);
      else {
        for (const slice of entry.slices.values()) {
          for (const endpoint of indexOf(slice).byAddress.get(address) ?? []) {
            names.push(`${endpointName(endpoint)}.${serviceName}`);
          }
        }
      }
    }
    if (names.length === 0) return undefined;
    return found(
      { name, type },
      [...new Set(names)].map((data) => ({ name, type: "PTR", ttl: TTL, data })),
    );
  }

  #resolveApex(type: number, serial: number): ZoneAnswer {
    const name = this.domain;
    const ns = `ns.dns.${name}`;
    if (type === recordType.soa) return { rcode: noError, answers: [this.soa(serial)], additionals: [] };
    if (type !== recordType.ns) return found({ name, type }, [this.soa(serial)]);
    return {
      rcode: noError,
      answers: [{ name, type: "NS", ttl: TTL, data: ns }],
      additionals: addressesOf(ns, this.#addresses),
    };
  }

  /** `labels`: those before `svc`, the last one first. */
  #resolveService(records: ClusterRecords, owner: Owner, labels: readonly string[]): ZoneAnswer {
    const [namespace, name, ...rest] = labels;
    if (namespace === undefined) return found(owner, []);
    if (name === undefined) return records.hasNamespace(namespace) ? found(owner, []) : notFound;
    const entry = records.find(namespace, name);
    const service = entry?.service;
    if (entry === undefined || service === undefined) return notFound;
    if (service.externalName !== undefined) {
      return rest.length === 0 ? resolveExternalName(owner, service.externalName) : notFound;
    }
    const [label, portLabel, ...more] = rest;
    if (label === undefined) return this.#resolveWhole(owner, entry, service);
    if (!label.startsWith("_")) {
      return portLabel === undefined ? resolveEndpoint(owner, entry, label) : notFound;
    }
    if (more.length > 0) return notFound;
    return this.#resolvePort(owner, entry, service, { protocol: label.slice(1), portLabel });
  }

  /** The name of the service itself. */
  #resolveWhole(owner: Owner, entry: ServiceEntry, service: ServiceRecord): ZoneAnswer {
    if (owner.type === recordType.srv) return this.#resolvePorts(owner, entry, service, () => true);
    const addresses = service.clusterIps ?? firstAddresses(entry, owner.type);
    // Without ready endpoints a headless service has no name.
    return addresses.length === 0 ? notFound : found(owner, addressesOf(owner.name, addresses));
  }

  /** `_port._protocol` before the name of a service. */
  #resolvePort(
    owner: Owner,
    entry: ServiceEntry,
    service: ServiceRecord,
    { protocol, portLabel }: { readonly protocol: string; readonly portLabel: string | undefined },
  ): ZoneAnswer {
    const ofProtocol = (port: PortRecord): boolean => port.name !== "" && port.protocol === protocol;
    const hasPort = (isWanted: (port: PortRecord) => boolean): boolean =>
      service.ports.some(isWanted) || entry.slices.values().some((slice) => slice.ports.some(isWanted));
    if (portLabel === undefined) return hasPort(ofProtocol) ? found(owner, []) : notFound;
    if (!portLabel.startsWith("_")) return notFound;
    const matches = (port: PortRecord): boolean => ofProtocol(port) && port.name === portLabel.slice(1);
    if (!hasPort(matches)) return notFound;
    const answer = this.#resolvePorts(owner, entry, service, matches);
    return owner.type === recordType.srv || answer.rcode !== noError ? answer : found(owner, []);
  }

  #resolvePorts(
    owner: Owner,
    entry: ServiceEntry,
    service: ServiceRecord,
    matches: (port: PortRecord) => boolean,
  ): ZoneAnswer {
    const serviceName = this.#serviceName(entry);
    const srv: ResourceRecord[] = [];
    const add = (target: string, { port }: PortRecord, weight: number): void => {
      srv.push({ name: owner.name, type: "SRV", ttl: TTL, data: { priority: 0, weight, port, target } });
    };
    if (!isHeadless(service)) {
      const ports = service.ports.filter(matches);
      for (const port of ports) add(serviceName, port, Math.max(1, Math.floor(SRV_WEIGHT / ports.length)));
      return { ...found(owner, srv), additionals: addressesOf(serviceName, service.clusterIps ?? []) };
    }
    const count = entry.slices.values().reduce((sum, slice) => sum + slice.endpoints.length, 0);
    if (count === 0) return notFound;
    const additionals: ResourceRecord[] = [];
    const weight = Math.max(1, Math.floor(SRV_WEIGHT / count));
    const seen = new Set<string>();
    for (const slice of entry.slices.values()) {
      const ports = slice.ports.filter(matches);
      if (ports.length === 0) continue;
      for (const endpoint of slice.endpoints) {
        // Thousands of endpoints with thousands of ports each have more records than memory can hold.
        if (srv.length >= RESPONSE_RECORDS_MAX) break;
        const target = `${endpointName(endpoint)}.${serviceName}`;
        additionals.push(...addressesOf(target, endpoint.addresses));
        for (const port of ports) {
          // With two IP families an endpoint is in two slices.
          const key = `${port.port} ${target}`;
          if (!seen.has(key)) add(target, port, weight);
          seen.add(key);
        }
      }
    }
    return { ...found(owner, srv), additionals };
  }

  #serviceName({ name, namespace }: ServiceEntry): string {
    return `${name}.${namespace}.svc${this.#suffix}`;
  }
}

interface Owner {
  readonly name: string;
  readonly type: number;
}

const notFound: ZoneAnswer = { rcode: nameError, answers: [], additionals: [] };

/** Those of the records that have the type. */
function found({ name, type }: Owner, records: readonly ResourceRecord[]): ZoneAnswer {
  if (type === recordType.any && records.length > 0) {
    const data = { cpu: ANY_TEXT, os: "" };
    return { rcode: noError, answers: [{ name, type: "HINFO", ttl: TTL, data }], additionals: [] };
  }
  return { rcode: noError, answers: records.filter((each) => typeNumbers[each.type] === type), additionals: [] };
}

const typeNumbers: Readonly<Record<ResourceRecord["type"], number>> = {
  A: recordType.a,
  AAAA: recordType.aaaa,
  CNAME: recordType.cname,
  HINFO: recordType.hinfo,
  NS: recordType.ns,
  PTR: recordType.ptr,
  SOA: recordType.soa,
  SRV: recordType.srv,
  TXT: recordType.txt,
};

function addressesOf(name: string, addresses: readonly string[]): readonly ResourceRecord[] {
  return addresses.map((data) => ({ name, type: data.includes(":") ? "AAAA" : "A", ttl: TTL, data }));
}

/**
 * As many of the type as a response can have, for a service may have a hundred thousand endpoints. Of the other family
 * one in each slice: the name exists.
 */
function firstAddresses({ slices }: ServiceEntry, type: number): readonly string[] {
  const other = { [recordType.a]: "IPv6", [recordType.aaaa]: "IPv4" }[type];
  const addresses: string[] = [];
  for (const { family, endpoints } of slices.values()) {
    for (const endpoint of family === other ? endpoints.slice(0, 1) : endpoints) {
      if (addresses.length >= RESPONSE_RECORDS_MAX) return addresses;
      addresses.push(...endpoint.addresses);
    }
  }
  return addresses;
}

interface SliceIndex {
  /** By the first label of their names. */
  readonly byLabel: ReadonlyMap<string, readonly EndpointRecord[]>;
  readonly byAddress: ReadonlyMap<string, readonly EndpointRecord[]>;
}

/** Of slices that were needed for the name or address of an endpoint. */
const indices = new WeakMap<SliceRecord, SliceIndex>();

function indexOf(slice: SliceRecord): SliceIndex {
  const known = indices.get(slice);
  if (known !== undefined) return known;
  const index = {
    byLabel: Map.groupBy(slice.endpoints, endpointName),
    byAddress: new Map<string, EndpointRecord[]>(),
  };
  for (const endpoint of slice.endpoints) {
    for (const address of new Set(endpoint.addresses)) {
      const others = index.byAddress.get(address);
      if (others === undefined) index.byAddress.set(address, [endpoint]);
      else others.push(endpoint);
    }
  }
  indices.set(slice, index);
  return index;
}

/** The first label of an endpoint: its host name, or its address with dashes. */
function endpointName({ hostname, addresses }: EndpointRecord): string {
  return hostname ?? (addresses[0] ?? "").replace(/[.:]/g, "-");
}

function resolveEndpoint(owner: Owner, entry: ServiceEntry, label: string): ZoneAnswer {
  const addresses = [...entry.slices.values()].flatMap((slice) =>
    (indexOf(slice).byLabel.get(label) ?? []).flatMap((endpoint) => endpoint.addresses),
  );
  return addresses.length === 0 ? notFound : found(owner, addressesOf(owner.name, addresses));
}

function resolveExternalName(owner: Owner, externalName: string): ZoneAnswer {
  const { name, type } = owner;
  if (isIPv4(externalName) || isIPv6(externalName)) return found(owner, addressesOf(name, [externalName]));
  if (!isEncodableName(externalName)) return found(owner, []);
  const answers: readonly ResourceRecord[] = [{ name, type: "CNAME", ttl: TTL, data: externalName }];
  const answer: ZoneAnswer = { rcode: noError, answers, additionals: [] };
  return type === recordType.cname || type === recordType.any ? answer : { ...answer, target: externalName };
}

/**
 * `10-244-0-7.NAMESPACE.pod`: the address is in the name, for every address and namespace. `labels`: those before
 * `pod`, the last one first.
 */
function resolvePod(owner: Owner, labels: readonly string[]): ZoneAnswer {
  const [namespace, address, ...more] = labels;
  if (more.length > 0) return notFound;
  if (namespace === undefined || address === undefined) return found(owner, []);
  const ip = /^\d+-\d+-\d+-\d+$/.test(address) ? address.replaceAll("-", ".") : address.replaceAll("-", ":");
  return isIPv4(ip) || isIPv6(ip) ? found(owner, addressesOf(owner.name, [ip])) : notFound;
}
