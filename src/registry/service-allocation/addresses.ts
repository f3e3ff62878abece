/**
 * Cluster IPs of services. Each allocated address is an IPAddress object whose parentRef is the service; creating it
 * fails when the address is in use. Free addresses come from the CIDRs of ServiceCIDR objects.
 */

import { FAMILY_LABEL, MANAGER, MANAGER_LABEL } from "../../api/networking/ip-address/labels.ts";
import type { IPAddress } from "../../api/networking/ip-address/schema.ts";
import type { ServiceCIDR } from "../../api/networking/service-cidr/schema.ts";
import { isNotFound, StatusError } from "../../api/status.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import {
  addressBits,
  type Cidr,
  contains,
  formatCidr,
  formatIp,
  type Ip,
  type IpFamily,
  parseCidr,
  parseIp,
} from "../../std/net/ip.ts";
import { create } from "../create.ts";
import { remove } from "../delete.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { metadataOf } from "../write/object-metadata.ts";

/** The address is not available; the message is Kubernetes'. */
export class AddressUnavailable extends Error {}

export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

/** The cluster IPs of all services. */
export interface ClusterIpAllocator {
  /** Allocates this address, which a dry run leaves free. Throws `AddressUnavailable`. */
  allocate(scope: Scope, service: ServiceName, text: string, dryRun: boolean): Promise<string>;
  /** Allocates any free address; a dry run results in that of the network. Throws `AddressUnavailable`. */
  allocateNext(scope: Scope, service: ServiceName, family: IpFamily, dryRun: boolean): Promise<string>;
  /** False for an address that is not allocated to the service, for which it does nothing. */
  release(scope: Scope, service: ServiceName, text: string): Promise<boolean>;
}

/** The addresses of a CIDR without the network and broadcast addresses. */
interface UsableRange {
  readonly first: bigint;
  readonly last: bigint;
  /** First address of the dynamic range; addresses below are preferred for static allocation. */
  readonly dynamic: bigint;
}

export class ServiceAddresses implements ClusterIpAllocator {
  readonly #addresses: Registry<IPAddress>;
  readonly #serviceCIDRs: Registry<ServiceCIDR>;
  readonly #random: RandomSource;

  constructor(addresses: Registry<IPAddress>, cidrs: Registry<ServiceCIDR>, random: RandomSource) {
    this.#addresses = addresses;
    this.#serviceCIDRs = cidrs;
    this.#random = random;
  }

  async allocate(scope: Scope, service: ServiceName, text: string, dryRun: boolean): Promise<string> {
    const ip = parseIp(text);
    if (ip === undefined) throw new AddressUnavailable(`failed to parse service IP ${goQuote(text)}`);
    const cidrs = await this.#readyCidrs(scope, ip.family);
    const cidr = cidrs.find((one) => contains(one, ip));
    // In Kubernetes a dry run uses one CIDR only.
    if (cidr === undefined && !dryRun) {
      throw new AddressUnavailable("the provided network does not match the current range");
    }
    if (cidr === undefined || !isUsable(cidr, ip)) {
      const range = cidr ?? cidrs[0];
      const why = `The range of valid IPs is ${range === undefined ? "empty" : formatCidr(range)}`;
      throw new AddressUnavailable(`the provided IP (${formatIp(ip)}) is not in the valid range. ${why}`);
    }
    if (!dryRun && !(await this.#create(scope, service, ip))) {
      throw new AddressUnavailable("provided IP is already allocated");
    }
    return text;
  }

  async allocateNext(scope: Scope, service: ServiceName, family: IpFamily, dryRun: boolean): Promise<string> {
    const cidrs = await this.#readyCidrs(scope, family);
    if (dryRun && cidrs[0] !== undefined) return formatIp({ ...cidrs[0].address, value: cidrs[0].network });
    const cache = await this.#addresses.freshCache(scope);
    for (const cidr of cidrs) {
      for (const value of candidateAddresses(cidr, this.#random)) {
        const ip: Ip = { family, value, notation: "standard" };
        const text = formatIp(ip);
        if (cache.get(this.#addresses.objects.key(undefined, text)) !== undefined) continue;
        if (await this.#create(scope, service, ip)) return text;
      }
    }
    throw new AddressUnavailable("range is full");
  }

  async release(scope: Scope, service: ServiceName, text: string): Promise<boolean> {
    const ip = parseIp(text);
    if (ip === undefined) return false;
    const name = formatIp(ip);
    const object = await this.#addresses.objects.get(this.#addresses.objects.key(undefined, name));
    if (object === undefined || !isAllocatedTo(object, service)) return false;
    const { uid } = metadataOf(object);
    try {
      await remove(this.#addresses, clusterScope(scope), name, { preconditions: { uid } });
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
  }

  /** Whether an object has the address. */
  async has(text: string): Promise<boolean> {
    const ip = parseIp(text);
    const { objects } = this.#addresses;
    return ip !== undefined && (await objects.get(objects.key(undefined, formatIp(ip)))) !== undefined;
  }

  /** False when the address is in use. */
  async #create(scope: Scope, { namespace, name }: ServiceName, ip: Ip): Promise<boolean> {
    const object: IPAddress = {
      metadata: { name: formatIp(ip), labels: { [FAMILY_LABEL]: ip.family, [MANAGER_LABEL]: MANAGER } },
      spec: { parentRef: { resource: "services", namespace, name } },
    };
    try {
      await create(this.#addresses, clusterScope(scope), object, { fieldManager: "kube-apiserver" });
      return true;
    } catch (error) {
      if (error instanceof StatusError && error.status.reason === "AlreadyExists") return false;
      throw error;
    }
  }

  /** Those of all families that the cache has. */
  cidrs(): readonly Cidr[] {
    const { cache, objects } = this.#serviceCIDRs;
    const texts = cache.list(objects.prefix()).items.flatMap(({ object }) => object.spec?.cidrs ?? []);
    return [...new Set(texts)].flatMap((text) => parseCidr(text) ?? []);
  }

  /** In the order of creation. */
  async #readyCidrs(scope: Pick<Scope, "signal">, family: IpFamily): Promise<readonly Cidr[]> {
    const cache = await this.#serviceCIDRs.freshCache(scope);
    const objects = cache.list(this.#serviceCIDRs.objects.prefix()).items.map(({ object }) => object);
    const ready = objects.filter(isReady).sort((a, b) => (creationOrder(a) < creationOrder(b) ? -1 : 1));
    return ready.flatMap(({ spec }) =>
      (spec?.cidrs ?? []).flatMap((text) => {
        const cidr = parseCidr(text);
        return cidr?.family === family ? [cidr] : [];
      }),
    );
  }
}

function clusterScope(scope: Scope): Scope {
  const { user, signal } = scope;
  return { namespace: "", group: "networking.k8s.io", user, signal };
}

export function isAllocatedTo({ spec }: IPAddress, { namespace, name }: ServiceName): boolean {
  const { group = "", resource, namespace: ns, name: owner } = spec?.parentRef ?? {};
  return group === "" && resource === "services" && ns === namespace && owner === name;
}

function creationOrder({ metadata }: ServiceCIDR): string {
  return `${metadata?.creationTimestamp ?? ""} ${metadata?.name ?? ""}`;
}

/** A ServiceCIDR without a Ready condition is ready, and none is that is terminating. */
function isReady({ metadata, status }: ServiceCIDR): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return metadata?.deletionTimestamp === undefined && (ready === undefined || ready.status === "True");
}

/** The static range is a sixteenth of the CIDR, at least 16 and at most 256 addresses, as in Kubernetes. */
export function usableRange(cidr: Cidr): UsableRange {
  const size = 1n << BigInt(addressBits(cidr.family) - cidr.prefixLength);
  const first = cidr.network + 1n;
  const last = cidr.network + size - (cidr.family === "IPv4" ? 2n : 1n);
  const sixteenth = size / 16n;
  const staticSize = size < 16n ? 0n : sixteenth < 16n ? 16n : sixteenth > 256n ? 256n : sixteenth;
  return { first, last, dynamic: first + staticSize > last ? first : first + staticSize };
}

function isUsable(cidr: Cidr, { value }: Ip): boolean {
  const { first, last } = usableRange(cidr);
  return first <= value && value <= last;
}

function* candidateAddresses(cidr: Cidr, random: RandomSource): Generator<bigint> {
  const { first, last, dynamic } = usableRange(cidr);
  yield* cycle(dynamic, last, random);
  yield* cycle(first, dynamic - 1n, random);
}

/** All numbers from `first` to `last`, starting at a random one. */
function* cycle(first: bigint, last: bigint, random: RandomSource): Generator<bigint> {
  const size = last - first + 1n;
  if (size <= 0n) return;
  const start = BigInt(`0x${Buffer.from(random.bytes(16)).toString("hex")}`) % size;
  for (let step = 0n; step < size; step++) yield first + ((start + step) % size);
}
