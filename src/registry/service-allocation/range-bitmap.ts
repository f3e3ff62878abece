/**
 * A RangeAllocation object in the store: a bit for each address or port of a range, under Kubernetes' keys and in its
 * format. It is where all servers over one store, also Kubernetes', find what is allocated.
 */
import { Buffer } from "node:buffer";
import { objectMeta } from "../../api/meta/object-meta.ts";
import { internalError } from "../../api/status.ts";
import { base64, message, optional, required, string } from "../../schema/define.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { decodeEnvelope, encodeEnvelope } from "../../schema/protobuf/envelope.ts";
import { KeyedMutex } from "../../std/async/keyed-mutex.ts";
import { type KeyValue, StoreError } from "../../storage/store.ts";
import type { RegistryDeps } from "../registry.ts";

const rangeAllocation = message("core/v1.RangeAllocation", {
  metadata: optional(1, objectMeta),
  range: required(2, string),
  /** The bits as a big-endian number, without leading zeros. */
  data: required(3, base64),
});

const IDENTITY = { apiVersion: "v1", kind: "RangeAllocation" };

/** Writes that lose a race before an allocation fails; each loss is a success of another one. */
const ATTEMPTS = 1000;

export type BitmapDeps = Pick<RegistryDeps, "store" | "prefix" | "names">;

export interface RangeBitmapOptions {
  /** The last segment of the key. */
  readonly name: string;
  /** Kubernetes' name of such objects, for messages. */
  readonly resource: string;
  /** `10.0.0.0/24`, `30000-32767` */
  readonly range: string;
  readonly size: number;
}

export interface StoredBits {
  readonly bits: Bits;
  /** Whether they are those of this range, and not of one before a change of a flag. */
  readonly isCurrent: boolean;
}

export class RangeBitmap {
  readonly #options: RangeBitmapOptions;
  readonly #key: string;
  readonly #deps: BitmapDeps;
  /** The writers of this process; those of others over the same store race with them. */
  readonly #writers = new KeyedMutex();

  constructor(options: RangeBitmapOptions, deps: BitmapDeps) {
    this.#options = options;
    this.#key = `${deps.prefix}/ranges/${options.name}`;
    this.#deps = deps;
  }

  empty(): Bits {
    return new Bits(this.#options.size);
  }

  /** Stores what `change` returns for the stored bits; it may be called again, and may throw. */
  update(change: (stored: StoredBits | undefined) => Bits): Promise<void> {
    return this.#writers.run(this.#key, () => this.replace(async (stored) => change(stored)));
  }

  /** As `update`, beside the other writers of this process. */
  async replace(rebuild: (stored: StoredBits | undefined) => Promise<Bits>): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const item = await this.#deps.store.get(this.#key);
      const stored = this.#decode(item);
      const before = stored?.bits.clone();
      const next = await rebuild(stored);
      if (stored?.isCurrent === true && before !== undefined && next.equals(before)) return;
      if (await this.#write(item, next)) return;
    }
    throw this.failure();
  }

  async read(): Promise<StoredBits | undefined> {
    return this.#decode(await this.#deps.store.get(this.#key));
  }

  failure(): Error {
    return internalError(`cannot allocate resources of type ${this.#options.resource} at this time`);
  }

  /** False when another write was first. */
  async #write(item: KeyValue | undefined, bits: Bits): Promise<boolean> {
    const { store, names = "svc" } = this.#deps;
    const object = { metadata: {}, range: this.#options.range, data: bits.toBase64() };
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

  #decode(item: KeyValue | undefined): StoredBits | undefined {
    if (item === undefined) return undefined;
    const { range, data } = decodeProtobuf(rangeAllocation, decodeEnvelope(item.value).raw);
    const isCurrent = range === this.#options.range;
    return { bits: isCurrent ? Bits.fromBase64(this.#options.size, data) : this.empty(), isCurrent };
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
