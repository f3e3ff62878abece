/** Returns memory to the system after busy times: V8 collects only when the program allocates. */
import { getHeapStatistics } from "node:v8";
import type { Clock, Timer } from "../time/clock.ts";
import { findMallocTrim } from "./malloc-trim.ts";

export interface IdleCollectionOptions {
  readonly clock: Clock;
  /** Collects all garbage. Undefined without `--expose-gc`: nothing is done then. */
  readonly collect?: ((options?: Compaction) => unknown) | undefined;
  /** Called when the process has become idle, before the collection: drops what can be created again. */
  readonly onIdle?: (() => void) | undefined;
  /** Returns memory that the C library has free after a collection. Undefined where that is impossible. */
  readonly trim?: (() => void) | undefined;
  /** CPU time of this process so far, in milliseconds. */
  readonly cpuMs?: () => number;
  readonly memory?: () => MemoryUse;
  /** Bytes of this process in the machine's memory. */
  readonly residentBytes?: () => number;
}

/** Moves the objects of all pages together, and drops code that is compiled again when it is needed. */
interface Compaction {
  readonly type: "major";
  readonly execution: "sync";
  readonly flavor: "last-resort";
}

/** Bytes of the JavaScript heap and of buffers. */
export interface MemoryUse {
  /** What the system has given. */
  readonly committed: number;
  /** What objects take, garbage included: right after a collection, what is live. */
  readonly used: number;
}

const CHECK_INTERVAL_MS = 10_000;
/** CPU use below which the process is idle. */
const IDLE_CPU_SHARE = 0.02;
/** CPU use above which the process collects by itself, and must not be held up. */
const BUSY_CPU_SHARE = 0.5;
/** Committed memory above which a process in use collects, as a multiple of what was live after the last collection. */
const COMMITTED_MAX = 1.5;
/**
 * The least time between two collections of a process that is in use or has grown; twice as long after each that did
 * not help.
 */
const IN_USE_INTERVAL_MS = 60_000;
const IN_USE_INTERVAL_MAX_MS = 16 * IN_USE_INTERVAL_MS;
/** CPU use above which an idle time is collected in any case. */
const WORKING_CPU_SHARE = 0.1;
/** The time between the collections of two idle times without such work between them. */
const IDLE_INTERVAL_MS = 600_000;
/**
 * Growth of the resident memory since the last collection after which an idle process collects. Little work at a time,
 * such as the compaction of the store's history every five minutes, leaves buffers outside of the heap.
 */
const GROWN_MIN_BYTES = 8 * 2 ** 20;
/** The second one frees what was only reachable through finalizers of the first. */
const COLLECTIONS = 2;
/** Committed memory above which the second one compacts the heap, as a multiple of what is live. */
const FRAGMENTED_MIN = 1.25;
/**
 * CPU time of work after which it compacts the heap in any case. A load leaves memory that only this collection frees,
 * and that does not count as free before it.
 */
const COMPACTION_WORK_MS = 5_000;
const COMPACTION: Compaction = { type: "major", execution: "sync", flavor: "last-resort" };

/**
 * Collects garbage twice, one check after the other, when the process has become idle: after work, every ten minutes,
 * when it holds more memory than it needs, or when its resident memory has grown. When it holds more, once a minute at
 * most, also while it is in use without being busy. Until disposed.
 */
export function collectGarbageWhenIdle(options: IdleCollectionOptions): Disposable {
  const { clock, collect = globalThis.gc, onIdle, cpuMs = processCpuMs, memory = memoryUse } = options;
  const { residentBytes = () => process.memoryUsage.rss() } = options;
  let { trim } = options;
  let before = cpuMs();
  let left = COLLECTIONS;
  let hasWorked = false;
  /** CPU time of the checks that were not idle, since the last compaction. */
  let workMs = 0;
  let timer: Timer | undefined;
  /** Bytes that were live after the last collection; unknown before the first. */
  let live = 0;
  let collectedAt = clock.monotonic();
  let intervalMs = IN_USE_INTERVAL_MS;
  /** Resident memory after the last collection. */
  let rested = residentBytes();
  let grownIntervalMs = IN_USE_INTERVAL_MS;
  const isOverCommitted = (): boolean => memory().committed > live * COMMITTED_MAX;
  const isFragmented = (): boolean => memory().committed > live * FRAGMENTED_MIN;
  const isGrown = (): boolean =>
    clock.monotonic() - collectedAt >= grownIntervalMs && residentBytes() - rested >= GROWN_MIN_BYTES;
  const check = (): void => {
    const spentMs = cpuMs() - before;
    const share = spentMs / CHECK_INTERVAL_MS;
    const isIdle = share < IDLE_CPU_SHARE;
    if (!isIdle) {
      left = COLLECTIONS;
      workMs += spentMs;
    } else if (left === 0 && isGrown()) left = COLLECTIONS;
    const isDue = share < BUSY_CPU_SHARE && clock.monotonic() - collectedAt >= intervalMs && isOverCommitted();
    if (share >= WORKING_CPU_SHARE) hasWorked = true;
    // A process whose CPU use is around the limit becomes idle every minute, and each time a collection costs as much.
    const isLongAgo = clock.monotonic() - collectedAt >= IDLE_INTERVAL_MS;
    const isWorthwhile = hasWorked || isLongAgo || left < COLLECTIONS || isOverCommitted() || isGrown();
    if (isIdle ? left > 0 && isWorthwhile : isDue) {
      if (isIdle && left === COLLECTIONS) onIdle?.();
      const grown = residentBytes() - rested;
      if (isIdle) left -= 1;
      if (isIdle) hasWorked = false;
      if (isIdle && left === 0 && (isFragmented() || workMs >= COMPACTION_WORK_MS)) {
        workMs = 0;
        collect?.(COMPACTION);
      } else collect?.();
      // Found at the first use: a program that ends soon does not need it.
      trim ??= findMallocTrim() ?? (() => {});
      trim();
      live = memory().used;
      const kept = residentBytes() - rested;
      if (grown >= GROWN_MIN_BYTES) {
        const hasHelped = kept < grown / 2;
        grownIntervalMs = hasHelped ? IN_USE_INTERVAL_MS : Math.min(2 * grownIntervalMs, IN_USE_INTERVAL_MAX_MS);
      }
      rested += kept;
      collectedAt = clock.monotonic();
      intervalMs = isOverCommitted() ? Math.min(2 * intervalMs, IN_USE_INTERVAL_MAX_MS) : IN_USE_INTERVAL_MS;
    }
    // CPU time of the collection itself does not count.
    before = cpuMs();
    timer = clock.timer(CHECK_INTERVAL_MS, check);
  };
  if (collect !== undefined) timer = clock.timer(CHECK_INTERVAL_MS, check);
  return { [Symbol.dispose]: () => timer?.cancel() };
}

function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function memoryUse(): MemoryUse {
  const { total_heap_size, used_heap_size, external_memory } = getHeapStatistics();
  return { committed: total_heap_size + external_memory, used: used_heap_size + external_memory };
}
