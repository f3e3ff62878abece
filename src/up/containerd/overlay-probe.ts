import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "../host/run-command.ts";

const MOUNT_MS_MAX = 10_000;

/** Mounts an overlay over two directories inside `directory` and unmounts it; rejects when that fails. */
export async function probeOverlay(directory: string): Promise<void> {
  const base = await mkdtemp(join(directory, ".overlay-"));
  try {
    const [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map((name) => join(base, name));
    for (const path of [lower, upper, work, merged]) await mkdir(path!);
    const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
    await runCommand("mount", ["-t", "overlay", "-o", options, "overlay", merged!], { timeoutMs: MOUNT_MS_MAX });
    await runCommand("umount", [merged!], { timeoutMs: MOUNT_MS_MAX });
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}
