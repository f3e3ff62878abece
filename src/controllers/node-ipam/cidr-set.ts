/** The blocks of a range that nodes have. */
import { addressBits, type Cidr, contains, formatCidr } from "../../std/net/ip.ts";

/** As in Kubernetes: more blocks than this are refused. */
const BLOCK_BITS_MAX = 16;

export class CidrSet {
  readonly #range: Cidr;
  readonly #prefixLength: number;
  /** Indexes; bounded by 2^16. */
  readonly #used = new Set<number>();
  #next = 0;
  /** How many blocks were allocated or occupied, and released. */
  allocations = 0;
  releases = 0;
  /** Called with the number of used blocks that an allocation skipped. */
  onAllocated: (skipped: number) => void = () => {};

  /** Throws an error for the operator if the range cannot be divided. */
  constructor(range: Cidr, prefixLength: number) {
    const bits = prefixLength - range.prefixLength;
    const text = formatCidr(range);
    if (bits < 0 || prefixLength > addressBits(range.family)) {
      throw new Error(
        `Cannot divide the cluster range ${text} into blocks for nodes with a mask of ${prefixLength} bits`,
      );
    }
    if (bits > BLOCK_BITS_MAX) {
      throw new Error(
        `Cannot divide the cluster range ${text} into blocks for nodes with a mask of ${prefixLength} bits: ` +
          `at most ${2 ** BLOCK_BITS_MAX} blocks are possible`,
      );
    }
    this.#range = range;
    this.#prefixLength = prefixLength;
  }

  get family(): Cidr["family"] {
    return this.#range.family;
  }

  /** The number of blocks. */
  get size(): number {
    return 2 ** (this.#prefixLength - this.#range.prefixLength);
  }

  /** The share of the blocks that are used. */
  get usage(): number {
    return this.#used.size / this.size;
  }

  /** Takes the first free block after the one that was taken last; undefined if there is none. */
  allocate(): Cidr | undefined {
    for (let step = 0; step < this.size; step++) {
      const index = (this.#next + step) % this.size;
      if (this.#used.has(index)) continue;
      this.#used.add(index);
      this.allocations++;
      this.onAllocated(step);
      this.#next = (index + 1) % this.size;
      return this.#blockAt(index);
    }
    return undefined;
  }

  /** Marks all blocks that overlap the range. False if it lies outside. */
  occupy(cidr: Cidr): boolean {
    const indexes = this.#indexesOf(cidr);
    for (const index of indexes) {
      if (!this.#used.has(index)) this.allocations++;
      this.#used.add(index);
    }
    return indexes.length > 0;
  }

  release(cidr: Cidr): void {
    for (const index of this.#indexesOf(cidr)) if (this.#used.delete(index)) this.releases++;
  }

  #blockAt(index: number): Cidr {
    const { family, network } = this.#range;
    const value = network + (BigInt(index) << this.#hostBits);
    const address = { family, value, notation: "standard" } as const;
    return { ...this.#range, address, network: value, prefixLength: this.#prefixLength };
  }

  get #hostBits(): bigint {
    return BigInt(addressBits(this.#range.family) - this.#prefixLength);
  }

  #indexesOf(cidr: Cidr): readonly number[] {
    const { family, network } = cidr;
    // A range that contains the whole of this one occupies all of it.
    const isWhole = contains(cidr, { family: this.#range.family, value: this.#range.network });
    if (isWhole && cidr.prefixLength <= this.#range.prefixLength) return Array.from({ length: this.size }, (_, i) => i);
    if (!contains(this.#range, { family, value: network })) return [];
    const first = Number((network - this.#range.network) >> this.#hostBits);
    const count = 2 ** Math.max(0, this.#prefixLength - cidr.prefixLength);
    return Array.from({ length: count }, (_, i) => first + i);
  }
}
