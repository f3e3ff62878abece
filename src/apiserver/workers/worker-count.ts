/** The number of threads of a server that starts without `--workers`. */
import { availableParallelism, totalmem } from "node:os";

/** Each thread decodes each change of the store: more threads make writes more expensive. */
const WORKERS_MAX = 4;
/** A thread takes 40 MiB, and its caches grow with the cluster. */
const BYTES_PER_WORKER = 512 * 2 ** 20;

export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
}

/** Within the limits of the control group. */
export function readMachine(): Machine {
  const limit = process.constrainedMemory();
  return { cores: availableParallelism(), memoryBytes: limit > 0 ? Math.min(limit, totalmem()) : totalmem() };
}

/** One for each core, as far as the memory suffices. */
export function defaultWorkers({ cores, memoryBytes }: Machine): number {
  return Math.max(1, Math.min(cores, WORKERS_MAX, Math.floor(memoryBytes / BYTES_PER_WORKER)));
}
