/** Limits of what all watch caches of a server keep in memory together, beside the stored bytes of each object. */
import { HistoryPool } from "./history.ts";
import { ApproximateLru } from "./lru.ts";
import { QueuePool } from "./queue-pool.ts";

/** In bytes. */
export interface MemoryLimits {
  /** Decoded objects, estimated. */
  readonly objects: number;
  /** Objects as JSON, and a frame of each watch event. A list that takes half of it is still there at the next read. */
  readonly encodings: number;
  /** Changes kept for clients that resume a watch. */
  readonly history: number;
  /** Events in the queues of watchers. */
  readonly queues: number;
}

export const MEMORY_LIMITS: MemoryLimits = {
  objects: 48 * 2 ** 20,
  encodings: 96 * 2 ** 20,
  history: 32 * 2 ** 20,
  queues: 32 * 2 ** 20,
};

/** A cached object whose decoded value and encodings can be created again from its stored bytes. */
export interface EvictableObject {
  /** Bytes of the stored value. */
  readonly size: number;
  /** Bytes of its encodings, those for watchers included. */
  readonly encodedSize: number;
  dropObject(): void;
  dropEncodings(): void;
}

/** Shared by all caches of a server: a kind takes what its use needs, not a fixed share. */
export class CacheMemory {
  readonly objects: ApproximateLru<EvictableObject>;
  readonly encodings: ApproximateLru<EvictableObject>;
  readonly history: HistoryPool;
  readonly queues: QueuePool;

  constructor(limits: MemoryLimits = MEMORY_LIMITS) {
    this.objects = new ApproximateLru(limits.objects, objectBytes, (object) => object.dropObject());
    this.encodings = new ApproximateLru(limits.encodings, encodingBytes, (object) => object.dropEncodings());
    this.history = new HistoryPool(limits.history);
    this.queues = new QueuePool(limits.queues);
  }
}

/** As measured: 4 KB for pods of 0.8 KB, 2 KB for config maps of 1.3 KB. */
function objectBytes({ size }: EvictableObject): number {
  return 1024 + 3 * size;
}

function encodingBytes({ encodedSize }: EvictableObject): number {
  return 200 + encodedSize;
}
