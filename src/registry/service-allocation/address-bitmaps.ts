/**
 * Cluster IPs of services while MultiCIDRServiceAllocator or DisableAllocatorDualWrite is off: one RangeAllocation
 * object for each range of `--service-cluster-ip-range`, with a bit for each address, under Kubernetes' keys and in its
 * format.
 */
import { goQuote } from "../../schema/value/go-quote.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import { addressBits, type Cidr, formatCidr, formatIp, type Ip, type IpFamily, parseIp } from "../../std/net/ip.ts";
import type { Scope } from "../scope.ts";
import { AddressUnavailable, type ClusterIpAllocator, type ServiceName, usableRange } from "./addresses.ts";
import { type BitmapDeps, type Bits, RangeBitmap } from "./range-bitmap.ts";

/** By the position of the range in the flag. */
const KEYS = ["serviceips", "secondaryserviceips"];
/** The longest bitmap is 128 KiB: each allocation writes it. */
const HOST_BITS_MAX = 20;
/** As in Kubernetes, the first addresses of an IPv6 range only. */
const IPV6_SIZE_MAX = 65_536;

export class AddressBitmaps implements ClusterIpAllocator {
  readonly ranges: readonly AddressBitmap[];

  /** Throws an error for the operator when a range is too large. */
  constructor(cidrs: readonly Cidr[], deps: BitmapDeps, random: RandomSource) {
    this.ranges = cidrs.map((cidr, i) => new AddressBitmap(cidr, KEYS[i] ?? "", deps, random));
  }

  async allocate(_scope: Scope, _service: ServiceName, text: string, dryRun: boolean): Promise<string> {
    const ip = parseIp(text);
    if (ip === undefined) throw new AddressUnavailable(`failed to parse service IP ${goQuote(text)}`);
    await this.#rangeOf(ip.family).allocate(ip, dryRun);
    return text;
  }

  async allocateNext(_scope: Scope, _service: ServiceName, family: IpFamily, dryRun: boolean): Promise<string> {
    return formatIp(await this.#rangeOf(family).allocateNext(dryRun));
  }

  async release(_scope: Scope, _service: ServiceName, text: string): Promise<boolean> {
    const ip = parseIp(text);
    const range = ip && this.ranges.find(({ cidr }) => cidr.family === ip.family);
    return range !== undefined && (await range.release(ip!));
  }

  #rangeOf(family: IpFamily): AddressBitmap {
    const range = this.ranges.find(({ cidr }) => cidr.family === family);
    if (range === undefined) throw new AddressUnavailable("the provided network does not match the current range");
    return range;
  }
}

export class AddressBitmap {
  readonly cidr: Cidr;
  readonly #first: bigint;
  readonly #size: number;
  /** The first bit of the dynamic range. */
  readonly #dynamic: number;
  readonly #stored: RangeBitmap;
  readonly #random: RandomSource;

  constructor(cidr: Cidr, name: string, deps: BitmapDeps, random: RandomSource) {
    const bits = addressBits(cidr.family);
    const longest = bits - HOST_BITS_MAX;
    if (cidr.prefixLength < longest) {
      const why = `it is too large; for ${bits}-bit addresses, the mask must be >= ${longest}`;
      throw new Error(`Cannot use --service-cluster-ip-range=${formatCidr(cidr)}: ${why}`);
    }
    const { first, last, dynamic } = usableRange(cidr);
    this.cidr = cidr;
    this.#first = first;
    const size = Number(last - first) + 1;
    this.#size = cidr.family === "IPv6" ? Math.min(size, IPV6_SIZE_MAX - 1) : size;
    this.#dynamic = Number(dynamic - first);
    const resource = "serviceipallocations";
    this.#stored = new RangeBitmap({ name, resource, range: formatCidr(cidr), size: this.#size }, deps);
    this.#random = random;
  }

  async allocate(ip: Ip, dryRun: boolean): Promise<void> {
    const offset = this.offsetOf(ip);
    if (offset === undefined) {
      const why = `The range of valid IPs is ${formatCidr(this.cidr)}`;
      throw new AddressUnavailable(`the provided IP (${formatIp(ip)}) is not in the valid range. ${why}`);
    }
    if (dryRun) return;
    await this.#update((bits) => {
      if (bits.has(offset)) throw new AddressUnavailable("provided IP is already allocated");
      bits.add(offset);
    });
  }

  async allocateNext(dryRun: boolean): Promise<Ip> {
    if (dryRun) return this.#toIp(-1);
    let chosen = 0;
    await this.#update((bits) => {
      const free = this.#findFree(bits, this.#dynamic, this.#size) ?? this.#findFree(bits, 0, this.#dynamic);
      if (free === undefined) throw new AddressUnavailable("range is full");
      chosen = free;
      bits.add(free);
    });
    return this.#toIp(chosen);
  }

  /** False for an address that is not allocated. */
  async release(ip: Ip): Promise<boolean> {
    const offset = this.offsetOf(ip);
    if (offset === undefined) return false;
    let wasAllocated = false;
    await this.#update((bits) => {
      wasAllocated = bits.has(offset);
      bits.delete(offset);
    });
    return wasAllocated;
  }

  /**
   * Replaces the stored bits by what `rebuild` returns for them; it may be called again. Bits of another range, as
   * before a change of the flag, are passed as none.
   */
  async replace(rebuild: (stored: Bits) => Promise<Bits>): Promise<void> {
    await this.#stored.replace((stored) => rebuild(stored?.bits ?? this.empty()));
  }

  /** Undefined for an address that is not in the range. */
  offsetOf({ family, value }: Ip): number | undefined {
    if (family !== this.cidr.family || value < this.#first) return undefined;
    const offset = value - this.#first;
    return offset < BigInt(this.#size) ? Number(offset) : undefined;
  }

  addressAt(offset: number): string {
    return formatIp(this.#toIp(offset));
  }

  empty(): Bits {
    return this.#stored.empty();
  }

  async #update(change: (bits: Bits) => void): Promise<void> {
    await this.#stored.update((stored) => {
      // The repair at the start of the server writes the first value: without it, addresses in use would appear free.
      if (stored === undefined) throw this.#stored.failure();
      if (!stored.isCurrent) throw new AddressUnavailable("the provided range does not match the current range");
      change(stored.bits);
      return stored.bits;
    });
  }

  /** Searches from a random bit of `from` to `to` (exclusive), and wraps around. */
  #findFree(bits: Bits, from: number, to: number): number | undefined {
    const size = to - from;
    const start = Math.floor(this.#random.fraction() * size);
    for (let step = 0; step < size; step++) {
      const offset = from + ((start + step) % size);
      if (!bits.has(offset)) return offset;
    }
    return undefined;
  }

  #toIp(offset: number): Ip {
    return { family: this.cidr.family, value: this.#first + BigInt(offset), notation: "standard" };
  }
}
