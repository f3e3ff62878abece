/** Measures a process with a small heap from outside, and from inside what a piece of work costs. */
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Turns } from "../../testing/std/turn-reporter.ts";

/** `SVC_MAIN=dist/svc`, for example: a bundle. */
const MAIN = resolve(process.env.SVC_MAIN ?? new URL("../../main.ts", import.meta.url).pathname);
const REPORTER = new URL("../../testing/std/turn-reporter.ts", import.meta.url).href;
export const HEAP_MIB = 256;
/** The young generation of the bundle, whose garbage counts as memory of the request. */
const semiSpace = ["--min-semi-space-size=4", "--max-semi-space-size=4"];

/** The command line before the subcommand; `SVC_TURNS` in the environment is the port for `connectMeter()`. */
export const measuredProgram: readonly string[] = [
  process.execPath,
  `--max-old-space-size=${HEAP_MIB}`,
  ...semiSpace,
  `--import=${REPORTER}`,
  MAIN,
];

export interface Cost extends Turns {
  /** By how much the resident memory exceeded that before, at its peak. */
  readonly residentMiB: number;
}

export interface ProcessMeter {
  readonly rssMiB: () => number;
  /** The largest resident memory since the last call. */
  readonly peakMiB: () => number;
  /** CPU time of the thread that runs the event loop. */
  readonly busyMs: () => number;
  /** Measures from inside the process what `work` costs; one at a time. */
  measure<T>(work: () => Promise<T>): Promise<readonly [T, Cost]>;
  dispose(): void;
}

/** The process listens on the port when this is called. */
export function connectMeter(pid: number, turnsPort: number): ProcessMeter {
  const memoryMiB = (field: string) =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
  const rssMiB = () => memoryMiB("VmRSS");
  const peakMiB = () => {
    const peak = memoryMiB("VmHWM");
    // Sets the peak to the present memory.
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
    return peak;
  };
  const busyMs = () => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  const reporter = connect(turnsPort, "127.0.0.1");
  const lines = createInterface({ input: reporter })[Symbol.asyncIterator]();
  const report = async (command: string): Promise<string> => {
    reporter.write(`${command}\n`);
    return (await lines.next()).value ?? "";
  };
  const measure: ProcessMeter["measure"] = async (work) => {
    peakMiB();
    const before = rssMiB();
    await report("begin");
    const result = await work();
    const measured = JSON.parse(await report("end")) as Turns;
    return [result, { ...measured, residentMiB: peakMiB() - before }];
  };
  return { rssMiB, peakMiB, busyMs, measure, dispose: () => reporter.destroy() };
}
