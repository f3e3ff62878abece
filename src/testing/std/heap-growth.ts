/** Measures what repeated work leaves in memory. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** How often a test of what is left in memory repeats its work: `make leaks` sets 1,000. */
export const LEAK_ROUNDS = Number(process.env.SVC_LEAK_ROUNDS ?? 200);

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc") as () => void;

/** Collects all garbage, with what only finalizers and finished promises refer to. */
export async function collectGarbage(): Promise<void> {
  for (let round = 0; round < 4; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    gc();
  }
}

/**
 * Bytes of live memory, buffers included, that each call leaves. The first fifth of the calls is not measured: they
 * compile code and fill what is bounded.
 */
export async function bytesLeftPerCall(work: (call: number) => unknown, { calls = LEAK_ROUNDS } = {}): Promise<number> {
  const first = Math.ceil(calls / 5);
  let before = 0;
  for (let call = 0; call < first + calls; call++) {
    if (call === first) before = await liveBytes();
    await work(call);
  }
  return Math.round(((await liveBytes()) - before) / calls);
}

export async function liveBytes(): Promise<number> {
  await collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
