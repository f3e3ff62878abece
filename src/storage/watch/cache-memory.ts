/** What all watch caches of a server keep in memory together, beside small stored values. */

import { ApproximateLru } from "../../std/collections/approximate-lru.ts";
import { type MemoryLimits, memoryLimits } from "../../std/memory/memory-limits.ts";
import { HistoryPool } from "./history.ts";
import { QueuePool } from "./queue-pool.ts";

const BUDGET_MIN = 16 * 2 ** 20;
const BUDGET_MAX = 192 * 2 ** 20;

/** An eighth of the memory and a quarter of V8's heap at most: other parts of the server need memory as well. */
export function cacheBudget({ bytes, heapBytes }: MemoryLimits): number {
  return Math.max(BUDGET_MIN, Math.min(BUDGET_MAX, Math.floor(bytes / 8), Math.floor(heapBytes / 4)));
}

/**
 * Bytes from which a value is read from the store again instead of being kept. For smaller ones the key, the labels and
 * the reference are a large part of what they cost.
 */
export const REREAD_BYTES_MIN = 2048;

/** What may be dropped of a cached object, because it can be created or read again. */
export interface EvictableObject {
  /** Bytes of what it keeps in memory: decoded object, encodings with those for watchers, and a large value. */
  readonly evictableBytes: number;
  evict(): void;
}

/** A number of bytes with a limit, which its users check. */
export class ByteCount {
  readonly max: number;
  bytes = 0;

  constructor(max: number) {
    this.max = max;
  }

  get isExceeded(): boolean {
    return this.bytes > this.max;
  }
}

/**
 * One budget, shared by all caches of a server: a kind takes what its use needs, not a fixed share. Histories and
 * queues of watchers have a sixth each, converted values a quarter; decoded objects, encodings and large values have
 * what these leave.
 */
export class CacheMemory {
  readonly objects: ApproximateLru<EvictableObject>;
  /** Bytes of large values that a conversion webhook has made, which cannot be read from the store again. */
  readonly converted: ByteCount;
  readonly history: HistoryPool;
  readonly queues: QueuePool;
  readonly #budgetBytes: number;

  constructor(budgetBytes: number = cacheBudget(memoryLimits())) {
    this.#budgetBytes = budgetBytes;
    this.history = new HistoryPool(budgetBytes / 6);
    this.queues = new QueuePool(budgetBytes / 6);
    this.converted = new ByteCount(budgetBytes / 4);
    this.objects = new ApproximateLru(
      () => budgetBytes - this.history.bytes - this.queues.bytes - this.converted.bytes,
      (object) => object.evictableBytes,
      (object) => object.evict(),
    );
  }

  /** Whether a list of so many bytes would evict most of what is in use: its encodings are not kept then. */
  isTooLarge(listBytes: number): boolean {
    return listBytes > this.#budgetBytes / 4;
  }
}
