/** What the watch caches of a server may keep in memory together, beside the bytes of each object as stored. */
import { type Evictable, encodingBytes, objectBytes } from "./change.ts";
import { HistoryPool } from "./history.ts";
import { QueuePool } from "./queue-pool.ts";
import { ApproximateLru } from "./lru.ts";

export interface MemoryLimits {
  /** Of objects as values, estimated. */
  readonly objects: number;
  /** Of objects as JSON. A list that takes half of it is still there the next time. */
  readonly encodings: number;
  /** Of changes kept for clients that come back. */
  readonly history: number;
  /** Of events that wait for watchers. */
  readonly queues: number;
}

export const MEMORY_LIMITS: MemoryLimits = {
  objects: 48 * 2 ** 20,
  encodings: 96 * 2 ** 20,
  history: 32 * 2 ** 20,
  queues: 32 * 2 ** 20,
};

/** One for all caches of a server: kinds share by what is used, not by what is set aside for each. */
export class CacheMemory {
  readonly objects: ApproximateLru<Evictable>;
  readonly encodings: ApproximateLru<Evictable>;
  readonly history: HistoryPool;
  readonly queues: QueuePool;

  constructor(limits: MemoryLimits = MEMORY_LIMITS) {
    this.objects = new ApproximateLru(limits.objects, objectBytes, (entry) => entry.dropObject());
    this.encodings = new ApproximateLru(limits.encodings, encodingBytes, (entry) => entry.dropEncodings());
    this.history = new HistoryPool(limits.history);
    this.queues = new QueuePool(limits.queues);
  }
}
