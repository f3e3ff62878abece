/**
 * Addresses of services. Each one that is taken is an IPAddress object that names its service; the store lets nobody
 * create the same twice. Free ones come from the blocks of the ServiceCIDR objects.
 */

import type { IPAddress } from "../../api/networking/ip-address/schema.ts";
import type { ServiceCIDR } from "../../api/networking/service-cidr/schema.ts";
import { isNotFound, StatusError } from "../../api/status.ts";
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

const FAMILY_LABEL = "ipaddress.kubernetes.io/ip-family";
export const MANAGER_LABEL = "ipaddress.kubernetes.io/managed-by";
export const MANAGER = "ipallocator.k8s.io";

/** An address cannot be had; the message says why, in Kubernetes' words. */
export class AddressUnavailable extends Error {}

export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

/** Addresses a block can give: all but the network's own and the broadcast address. */
interface UsableRange {
  readonly first: bigint;
  readonly last: bigint;
  /** From here on they are given to those who ask for none in particular. */
  readonly dynamic: bigint;
}

export class ServiceAddresses {
  readonly #addresses: Registry<IPAddress>;
  readonly #blocks: Registry<ServiceCIDR>;
  readonly #random: RandomSource;

  constructor(addresses: Registry<IPAddress>, blocks: Registry<ServiceCIDR>, random: RandomSource) {
    this.#addresses = addresses;
    this.#blocks = blocks;
    this.#random = random;
  }

  /** The text of the address. A dry run makes no object. Throws `AddressUnavailable`. */
  async allocate(scope: Scope, service: ServiceName, text: string, dryRun: boolean): Promise<string> {
    const ip = parseIp(text);
    if (ip === undefined) throw new AddressUnavailable(`failed to parse service IP ${JSON.stringify(text)}`);
    const blocks = await this.#readyCidrs(scope, ip.family);
    const block = blocks.find((one) => contains(one, ip));
    // Dry runs know one block only.
    if (block === undefined && !dryRun) {
      throw new AddressUnavailable("the provided network does not match the current range");
    }
    if (block === undefined || !isUsable(block, ip)) {
      const known = block ?? blocks[0];
      const why = `The range of valid IPs is ${known === undefined ? "empty" : formatCidr(known)}`;
      throw new AddressUnavailable(`the provided IP (${formatIp(ip)}) is not in the valid range. ${why}`);
    }
    if (!dryRun && !(await this.#create(scope, service, ip))) {
      throw new AddressUnavailable("provided IP is already allocated");
    }
    return text;
  }

  /** Throws `AddressUnavailable`. */
  async allocateNext(scope: Scope, service: ServiceName, family: IpFamily, dryRun: boolean): Promise<string> {
    const cache = await this.#addresses.freshCache(scope);
    for (const block of await this.#readyCidrs(scope, family)) {
      // Who asks twice what would be is told the same.
      for (const value of candidateAddresses(block, dryRun ? undefined : this.#random)) {
        const ip: Ip = { family, value, notation: "standard" };
        const text = formatIp(ip);
        if (cache.get(this.#addresses.objects.key(undefined, text)) !== undefined) continue;
        if (dryRun || (await this.#create(scope, service, ip))) return text;
      }
    }
    throw new AddressUnavailable("range is full");
  }

  /** Does nothing for an address that belongs to somebody else, or to nobody. */
  async release(scope: Scope, service: ServiceName, text: string): Promise<void> {
    const ip = parseIp(text);
    if (ip === undefined) return;
    const name = formatIp(ip);
    const object = await this.#addresses.objects.get(this.#addresses.objects.key(undefined, name));
    if (object === undefined || !isAllocatedTo(object, service)) return;
    const { uid } = metadataOf(object);
    try {
      await remove(this.#addresses, clusterScope(scope), name, { preconditions: { uid } });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** False when the address is taken. */
  async #create(scope: Scope, { namespace, name }: ServiceName, ip: Ip): Promise<boolean> {
    const object: IPAddress = {
      metadata: { name: formatIp(ip), labels: { [FAMILY_LABEL]: ip.family, [MANAGER_LABEL]: MANAGER } },
      spec: { parentRef: { resource: "services", namespace, name } },
    };
    try {
      await create(this.#addresses, clusterScope(scope), object);
      return true;
    } catch (error) {
      if (error instanceof StatusError && error.status.reason === "AlreadyExists") return false;
      throw error;
    }
  }

  /** In the order in which they came to be. */
  async #readyCidrs(scope: Pick<Scope, "signal">, family: IpFamily): Promise<readonly Cidr[]> {
    const cache = await this.#blocks.freshCache(scope);
    const objects = cache.list(this.#blocks.objects.prefix()).items.map(({ object }) => object);
    const ready = objects.filter(isReady).sort((a, b) => (creationOrder(a) < creationOrder(b) ? -1 : 1));
    return ready.flatMap(({ spec }) =>
      (spec?.cidrs ?? []).flatMap((text) => {
        const block = parseCidr(text);
        return block?.family === family ? [block] : [];
      }),
    );
  }
}

function clusterScope(scope: Scope): Scope {
  const { user, signal } = scope;
  return { namespace: "", group: "networking.svc.io", user, signal };
}

export function isAllocatedTo({ spec }: IPAddress, { namespace, name }: ServiceName): boolean {
  const { group = "", resource, namespace: ns, name: owner } = spec?.parentRef ?? {};
  return group === "" && resource === "services" && ns === namespace && owner === name;
}

function creationOrder({ metadata }: ServiceCIDR): string {
  return `${metadata?.creationTimestamp ?? ""} ${metadata?.name ?? ""}`;
}

/** Without anybody's word on it, a block is ready until it is to go. */
function isReady({ metadata, status }: ServiceCIDR): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return ready === undefined ? metadata?.deletionTimestamp === undefined : ready.status === "True";
}

/** The part that is left to those who name their address grows with the block: a sixteenth, from 16 to 256. */
export function usableRange(block: Cidr): UsableRange {
  const size = 1n << BigInt(addressBits(block.family) - block.prefixLength);
  const first = block.network + 1n;
  const last = block.network + size - (block.family === "IPv4" ? 2n : 1n);
  const sixteenth = size / 16n;
  const kept = size < 16n ? 0n : sixteenth < 16n ? 16n : sixteenth > 256n ? 256n : sixteenth;
  return { first, last, dynamic: first + kept > last ? first : first + kept };
}

function isUsable(block: Cidr, { value }: Ip): boolean {
  const { first, last } = usableRange(block);
  return first <= value && value <= last;
}

function* candidateAddresses(block: Cidr, random: RandomSource | undefined): Generator<bigint> {
  const { first, last, dynamic } = usableRange(block);
  yield* cycle(dynamic, last, random);
  yield* cycle(first, dynamic - 1n, random);
}

/** Every number between the two, round from anywhere; from the first without `random`. */
function* cycle(first: bigint, last: bigint, random: RandomSource | undefined): Generator<bigint> {
  const size = last - first + 1n;
  if (size <= 0n) return;
  const start = random === undefined ? 0n : BigInt(`0x${Buffer.from(random.bytes(16)).toString("hex")}`) % size;
  for (let step = 0n; step < size; step++) yield first + ((start + step) % size);
}
