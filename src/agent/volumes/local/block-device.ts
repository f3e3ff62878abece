/** Formats block devices without a file system, checks others, and mounts them. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

export interface DeviceMount {
  readonly device: string;
  readonly target: string;
  /** `ext4` when empty. */
  readonly fsType: string;
  readonly options: readonly string[];
}

const execFileAsync = promisify(execFile);
/** Exit status of blkid: it found no known content. */
const NOTHING_FOUND = 2;

/** Rejects when the device has other content; never overwrites it. */
export async function formatAndMount({ device, target, fsType, options }: DeviceMount): Promise<void> {
  const wanted = fsType === "" ? "ext4" : fsType;
  const found = await detectContent(device);
  if (found === "") {
    const options = wanted === "xfs" ? ["-f"] : wanted.startsWith("ext") ? ["-F", "-m0"] : [];
    await execFileAsync(`mkfs.${wanted}`, [...options, device]);
  } else if (found !== wanted) {
    throw new Error(`failed to mount the volume as "${wanted}": it already contains ${found}`);
  } else if (wanted.startsWith("ext")) {
    await runFsck(device);
  }
  await execFileAsync("mount", ["-t", wanted, "-o", ["defaults", ...options].join(","), device, target]);
}

/** Type of the file system or partition table; empty for a blank device. */
async function detectContent(device: string): Promise<string> {
  try {
    const { stdout } = await execFileAsync("blkid", ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device]);
    const entries = new Map(stdout.split("\n").map((line) => line.split("=", 2) as [string, string]));
    const table = entries.get("PTTYPE");
    return entries.get("TYPE") ?? (table === undefined ? "" : `a partition table (${table})`);
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === NOTHING_FOUND) return "";
    throw error;
  }
}

/** Repairs what can be repaired automatically; exit status 4: errors are left. */
async function runFsck(device: string): Promise<void> {
  await execFileAsync("fsck", ["-a", device]).catch((error: { readonly code?: unknown; readonly stdout?: string }) => {
    if (error.code === 4) throw new Error(`'fsck' found errors on device ${device} but could not correct them`);
  });
}
