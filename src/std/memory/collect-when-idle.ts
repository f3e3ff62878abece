/** Returns memory to the system after busy times: V8 collects only when the program allocates. */
import type { Clock, Timer } from "../time/clock.ts";

export interface IdleCollectionOptions {
  readonly clock: Clock;
  /** Collects all garbage. Undefined without `--expose-gc`: nothing is done then. */
  readonly collect?: (() => void) | undefined;
  /** CPU time of this process so far, in milliseconds. */
  readonly cpuMs?: () => number;
}

const CHECK_INTERVAL_MS = 10_000;
/** CPU use below which the process is idle; a busy one collects while it works. */
const IDLE_CPU_SHARE = 0.02;
/** The second one frees what was only reachable through finalizers of the first. */
const COLLECTIONS = 2;

/** Collects garbage twice, one check after the other, each time the process has become idle; until disposed. */
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
