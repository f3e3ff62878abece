/** Measures for `make bench` what one call of a function costs, on a machine that is not idle. */

/** Defined with `node --expose-gc`. */
declare const gc: (() => void) | undefined;

/** Microseconds of CPU time per call: the best of five rounds, after a warm-up. */
export function cpuMicroseconds(run: () => unknown, calls = 2000): number {
  for (let call = 0; call < calls; call++) run();
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < calls; call++) run();
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / calls);
  }
  return Number(best.toFixed(2));
}

/** Bytes of heap per call, when no garbage is collected meanwhile, which requires `--expose-gc`. */
export function heapBytes(run: () => unknown): number {
  const calls = 50;
  if (typeof gc === "function") gc();
  const before = process.memoryUsage().heapUsed;
  for (let call = 0; call < calls; call++) run();
  return Math.round((process.memoryUsage().heapUsed - before) / calls);
}
