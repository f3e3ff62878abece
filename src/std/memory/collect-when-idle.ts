/** Gives back the memory that busy times took: V8 itself collects only when somebody asks for more. */
import type { Clock, Timer } from "../time/clock.ts";

export interface IdleCollectionOptions {
  readonly clock: Clock;
  /** Collects all garbage; undefined: Node was started without `--expose-gc`, and nothing is done. */
  readonly collect?: (() => void) | undefined;
  /** Processor time of this process so far, in milliseconds. */
  readonly cpuMs?: () => number;
}

const CHECK_INTERVAL_MS = 10_000;
/** A process that takes more of a processor has other things to do, and collects while it does them. */
const IDLE_CPU_SHARE = 0.02;
/** What is only kept by what one collection frees, the next one frees. */
const COLLECTIONS = 2;

/** Until it is disposed of: collects garbage twice, one look after the other, once the process has become calm. */
export function collectGarbageWhenIdle(options: IdleCollectionOptions): Disposable {
  const { clock, collect = globalThis.gc, cpuMs = processCpuMs } = options;
  let before = cpuMs();
  let left = COLLECTIONS;
  let timer: Timer | undefined;
  const check = (): void => {
    const isIdle = cpuMs() - before < CHECK_INTERVAL_MS * IDLE_CPU_SHARE;
    if (!isIdle) left = COLLECTIONS;
    else if (left > 0) {
      left -= 1;
      collect?.();
    }
    // What the collection took is no work.
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
