/** What the kernel is expected to do when memory runs out or something breaks, and the keys that containers need. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Kubernetes' agents want these, by their files below `/proc/sys`. */
const expected = {
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
} as const;

/** What differs, in Kubernetes' words; what the kernel does not have cannot differ. */
export async function findKernelProblems(directory = "/proc/sys"): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const [name, wanted] of Object.entries(expected)) {
    const text = await readFile(join(directory, name), "utf8").catch(() => undefined);
    if (text === undefined || Number(text) === wanted) continue;
    problems.push(`invalid kernel flag: ${name}, expected value: ${wanted}, actual value: ${text.trim()}`);
  }
  return problems;
}
