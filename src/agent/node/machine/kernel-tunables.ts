/** Kernel parameters that kubelet requires (`--protect-kernel-defaults`). */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** By their files below `/proc/sys`. */
const expected = {
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
} as const;

/** Parameters with other values, in kubelet's format; parameters that the kernel lacks are skipped. */
export async function findKernelProblems(directory = "/proc/sys"): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const [name, wanted] of Object.entries(expected)) {
    const text = await readFile(join(directory, name), "utf8").catch(() => undefined);
    if (text === undefined || Number(text) === wanted) continue;
    problems.push(`invalid kernel flag: ${name}, expected value: ${wanted}, actual value: ${text.trim()}`);
  }
  return problems;
}
