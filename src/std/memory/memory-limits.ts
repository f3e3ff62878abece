/** How much memory this process may use. */
import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";

export interface MemoryLimits {
  /** Of the machine, or of the control group of the process if that is less. */
  readonly bytes: number;
  /** Of V8's heap: `--max-old-space-size` or its default. */
  readonly heapBytes: number;
}

/** `machine` and `group` are for tests; a group of 0, or larger than the machine, has no limit. */
export function memoryLimits(
  machine: number = totalmem(),
  group: number = process.constrainedMemory(),
  heapBytes: number = getHeapStatistics().heap_size_limit,
): MemoryLimits {
  return { bytes: group > 0 ? Math.min(machine, group) : machine, heapBytes };
}
