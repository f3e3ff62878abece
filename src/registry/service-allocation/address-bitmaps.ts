/**
 * Cluster IPs of services while MultiCIDRServiceAllocator or DisableAllocatorDualWrite is off: one RangeAllocation
 * object for each range of `--service-cluster-ip-range`, with a bit for each address, under Kubernetes' keys and in its
 * format.
 */
import { Buffer } from "node:buffer";
import { objectMeta } from "../../api/meta/object-meta.ts";
import { base64, message, optional, required, string } from "../../schema/define.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { decodeEnvelope, encodeEnvelope } from "../../schema/protobuf/envelope.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { KeyedMutex } from "../../std/async/keyed-mutex.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import { addressBits, type Cidr, formatCidr, formatIp, type Ip, type IpFamily, parseIp } from "../../std/net/ip.ts";
import { type KeyValue, StoreError } from "../../storage/store.ts";
import type { RegistryDeps } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { AddressUnavailable, type ClusterIpAllocator, type ServiceName, usableRange } from "./addresses.ts";
import { internalError } from "./internal-error.ts";

const rangeAllocation = message("core/v1.RangeAllocation", {
  metadata: optional(1, objectMeta),
  range: required(2, string),
  /** The bits as a big-endian number, without leading zeros. */
  data: required(3, base64),
});

const IDENTITY = { apiVersion: "v1", kind: "RangeAllocation" };
/** By the position of the range in the flag. */
const KEYS = ["serviceips", "secondaryserviceips"];
/** The longest bitmap is 128 KiB: each allocation writes it. */
const HOST_BITS_MAX = 20;
/** As in Kubernetes, the first addresses of an IPv6 range only. */
const IPV6_SIZE_MAX = 65_536;

/** Writes that lose a race before an allocation fails; each loss is a success of another one. */
const ATTEMPTS = 1000;

type BitmapDeps = Pick<RegistryDeps, "store" | "prefix" | "names">;

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
  readonly #key: string;
  readonly #deps: BitmapDeps;
  readonly #random: RandomSource;
  /** The writers of this process; those of others over the same store race with them. */
  readonly #writers = new KeyedMutex();

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
    this.#key = `${deps.prefix}/ranges/${name}`;
    this.#deps = deps;
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
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const item = await this.#deps.store.get(this.#key);
      const stored = this.#decode(item);
      const next = await rebuild(stored?.bits ?? new Bits(this.#size));
      if (stored?.isCurrent === true && next.equals(stored.bits)) return;
      if (await this.#write(item, next)) return;
    }
    throw this.#failure();
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
    return new Bits(this.#size);
  }

  #update(change: (bits: Bits) => void): Promise<void> {
    return this.#writers.run(this.#key, () => this.#tryUpdates(change));
  }

  async #tryUpdates(change: (bits: Bits) => void): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const item = await this.#deps.store.get(this.#key);
      const stored = this.#decode(item);
      // The repair at the start of the server writes the first value: without it, addresses in use would appear free.
      if (stored === undefined) throw this.#failure();
      if (!stored.isCurrent) throw new AddressUnavailable("the provided range does not match the current range");
      const before = stored.bits.clone();
      change(stored.bits);
      if (stored.bits.equals(before) || (await this.#write(item, stored.bits))) return;
    }
    throw this.#failure();
  }

  #failure(): Error {
    return internalError("cannot allocate resources of type serviceipallocations at this time");
  }

  /** False when another write was first. */
  async #write(item: KeyValue | undefined, bits: Bits): Promise<boolean> {
    const { store, names = "svc" } = this.#deps;
    const object = { metadata: {}, range: formatCidr(this.cidr), data: bits.toBase64() };
    const value = encodeEnvelope(names, IDENTITY, encodeProtobuf(rangeAllocation, object));
    try {
      if (item === undefined) await store.create(this.#key, value);
      else await store.update(this.#key, value, item.modified);
      return true;
    } catch (error) {
      if (error instanceof StoreError && (error.code === "exists" || error.code === "conflict")) return false;
      throw error;
    }
  }

  #decode(item: KeyValue | undefined): { readonly bits: Bits; readonly isCurrent: boolean } | undefined {
    if (item === undefined) return undefined;
    const { range, data } = decodeProtobuf(rangeAllocation, decodeEnvelope(item.value).raw);
    const isCurrent = range === formatCidr(this.cidr);
    return { bits: isCurrent ? Bits.fromBase64(this.#size, data) : new Bits(this.#size), isCurrent };
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

/** A set of numbers below `size`. Bit 0 is the lowest one of the last byte. */
export class Bits {
  readonly #bytes: Uint8Array;

  constructor(size: number, bytes: Uint8Array = new Uint8Array()) {
    const length = Math.ceil(size / 8);
    this.#bytes = new Uint8Array(length);
    // Bits of a longer value are not in the range.
    const used = bytes.subarray(Math.max(0, bytes.length - length));
    this.#bytes.set(used, length - used.length);
  }

  static fromBase64(size: number, text: string): Bits {
    return new Bits(size, Buffer.from(text, "base64"));
  }

  has(bit: number): boolean {
    return ((this.#bytes[this.#index(bit)] ?? 0) & (1 << (bit & 7))) !== 0;
  }

  add(bit: number): void {
    this.#bytes[this.#index(bit)] = (this.#bytes[this.#index(bit)] ?? 0) | (1 << (bit & 7));
  }

  delete(bit: number): void {
    this.#bytes[this.#index(bit)] = (this.#bytes[this.#index(bit)] ?? 0) & ~(1 << (bit & 7));
  }

  *[Symbol.iterator](): Generator<number> {
    for (let index = this.#bytes.length - 1; index >= 0; index--) {
      if (this.#bytes[index] === 0) continue;
      const lowest = (this.#bytes.length - 1 - index) * 8;
      for (let bit = lowest; bit < lowest + 8; bit++) if (this.has(bit)) yield bit;
    }
  }

  clone(): Bits {
    return new Bits(this.#bytes.length * 8, this.#bytes);
  }

  equals(other: Bits): boolean {
    return Buffer.compare(this.#bytes, other.#bytes) === 0;
  }

  toBase64(): string {
    const start = this.#bytes.findIndex((byte) => byte !== 0);
    return start === -1 ? "" : Buffer.from(this.#bytes.subarray(start)).toString("base64");
  }

  #index(bit: number): number {
    return this.#bytes.length - 1 - (bit >> 3);
  }
}
