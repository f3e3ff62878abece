/** Ends a process whose event loop has stopped, as in endless garbage collection near the heap limit. */
import { Worker } from "node:worker_threads";

export interface WatchdogOptions {
  /** Seconds without a turn of the event loop after which the process ends. */
  readonly seconds: number;
}

const BEAT_MS = 250;
/** MiB: the thread runs a loop only. */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 1, stackSizeMb: 1 };

/**
 * The thread counts its own seconds without a beat, so that a process that was suspended does not end. Signal handlers
 * do not run while the event loop stands still: SIGKILL is all that is left.
 */
const LOOP = `
const { workerData } = require("node:worker_threads");
const { seconds, state } = workerData;
let last = 0;
let missed = 0;
while (Atomics.wait(state, 1, 0, 1000) === "timed-out") {
  const beat = Atomics.load(state, 0);
  missed = beat === last ? missed + 1 : 0;
  last = beat;
  if (missed < seconds) continue;
  require("node:fs").writeSync(2, "svc: no turn of the event loop for " + seconds + " s; exiting\\n");
  process.kill(process.pid, "SIGKILL");
}`;

/** A thread takes 7 MiB and 25 ms of CPU time: start one only when the event loop may stop. */
export class Watchdog implements Disposable {
  readonly #state = new Int32Array(new SharedArrayBuffer(8));
  readonly #worker: Worker;
  readonly #timer: NodeJS.Timeout;

  constructor({ seconds }: WatchdogOptions) {
    this.#worker = new Worker(LOOP, {
      eval: true,
      workerData: { seconds, state: this.#state },
      resourceLimits: THREAD_LIMITS,
      execArgv: [],
      env: {},
    });
    // Without memory for the thread there is no watchdog; the process goes on.
    this.#worker.on("error", () => {}).unref();
    // The thread counts real seconds: with the clock of a test, the beats would stop whenever that clock stands still.
    this.#timer = setInterval(() => void Atomics.add(this.#state, 0, 1), BEAT_MS).unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    Atomics.store(this.#state, 1, 1);
    Atomics.notify(this.#state, 1);
  }
}
