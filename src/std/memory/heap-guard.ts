/** Observes how close V8's heap is to its limit. */
import { getHeapStatistics } from "node:v8";
import type { Clock } from "../time/clock.ts";

export interface HeapGuardOptions {
  readonly clock: Clock;
  /** Collects all garbage. Undefined without `--expose-gc`: what is live is unknown then. */
  readonly collect?: (() => void) | undefined;
  /** The used part of the heap, garbage included. */
  readonly usedShare?: () => number;
  /** Called when the heap becomes crowded, and when it is not any more. */
  readonly onCrowded?: (isCrowded: boolean) => void;
}

const SAMPLE_MS = 100;
/** Full collections are at least this far apart. */
const COLLECT_MS = 2000;
const CROWDED_SHARE = 0.5;
/** Below it a crowded heap is not crowded any more. */
const SPACIOUS_SHARE = 0.35;
/** Above it V8 collects ever more often, with ever less result. */
const EXHAUSTED_SHARE = 0.8;

export class HeapGuard {
  readonly #options: HeapGuardOptions;
  #sampledAt = Number.NEGATIVE_INFINITY;
  #collectedAt = Number.NEGATIVE_INFINITY;
  #crowded = false;
  #exhausted = false;

  constructor(options: HeapGuardOptions) {
    this.#options = options;
  }

  /** Whether live objects fill most of the heap, as of 100 ms ago at most. */
  isExhausted(): boolean {
    const now = this.#options.clock.monotonic();
    if (now - this.#sampledAt >= SAMPLE_MS) {
      this.#sampledAt = now;
      this.#sample(now);
    }
    return this.#exhausted;
  }

  #sample(now: number): void {
    const { collect = globalThis.gc, usedShare = heapShare, onCrowded } = this.#options;
    let share = usedShare();
    // Only a collection can show what of it is live.
    if (share >= EXHAUSTED_SHARE && collect !== undefined && now - this.#collectedAt >= COLLECT_MS) {
      this.#collectedAt = now;
      collect();
      share = usedShare();
      this.#exhausted = share >= EXHAUSTED_SHARE;
    } else if (share < EXHAUSTED_SHARE) this.#exhausted = false;
    const crowded = share >= (this.#crowded ? SPACIOUS_SHARE : CROWDED_SHARE);
    if (crowded === this.#crowded) return;
    this.#crowded = crowded;
    onCrowded?.(crowded);
  }
}

function heapShare(): number {
  const { used_heap_size, heap_size_limit } = getHeapStatistics();
  return used_heap_size / heap_size_limit;
}
