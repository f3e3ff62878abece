/** The mounts that the agent makes itself. An interface, so that its users can be tested without root. */
import { execFile } from "node:child_process";
import { readFile, realpath } from "node:fs/promises";
import { promisify } from "node:util";

export interface Mounter {
  /** `sizeBytes` 0: the kernel's default. */
  tmpfs(target: string, sizeBytes: number): Promise<void>;
  /** `pageSize`: `2Mi` */
  hugePages(target: string, pageSize: string): Promise<void>;
  /** `source` may be a path below /proc/self/fd, which cannot be replaced by a symbolic link. */
  bind(source: string, target: string): Promise<void>;
  unmount(target: string): Promise<void>;
  /** Mount points at or below `path`, deepest first. */
  listMountPoints(path: string): Promise<readonly string[]>;
}

/** As kubelet, for volumes of servers. */
const UNMOUNT_MS = 60_000;

const execFileAsync = promisify(execFile);

export const systemMounter: Mounter = {
  async tmpfs(target, sizeBytes) {
    const size = sizeBytes > 0 ? [`size=${sizeBytes}`] : [];
    await execFileAsync("mount", ["-t", "tmpfs", "-o", ["rw", "noswap", ...size].join(","), "tmpfs", target]).catch(
      () =>
        // noswap needs Linux 6.3
        execFileAsync("mount", ["-t", "tmpfs", "-o", ["rw", ...size].join(","), "tmpfs", target]),
    );
  },
  async hugePages(target, pageSize) {
    await execFileAsync("mount", [
      "-t",
      "hugetlbfs",
      "-o",
      `nodev,pagesize=${pageSize.replace(/i$/, "")}`,
      "nodev",
      target,
    ]);
  },
  async bind(source, target) {
    // Without --no-canonicalize mount would resolve the path of a file descriptor.
    await execFileAsync("mount", ["--no-canonicalize", "--bind", source, target]);
  },
  async unmount(target) {
    await execFileAsync("umount", [target], { timeout: UNMOUNT_MS }).catch((error: { readonly killed?: boolean }) => {
      if (error.killed !== true) throw error;
      // A server that does not respond must not keep the pod.
      return execFileAsync("umount", ["-f", target]);
    });
  },
  async listMountPoints(path) {
    // The kernel's table has real paths, without symbolic links.
    const real = await realpath(path).catch(() => path);
    const table = await readFile("/proc/self/mountinfo", "utf8");
    // Pods may have tens of thousands of mounts.
    const escaped = escapeOctal(real);
    const points = table
      .split("\n")
      .filter((line) => line.includes(escaped))
      .map((line) => unescapeOctal(line.split(" ")[4] ?? ""))
      .filter((point) => point === real || point.startsWith(`${real}/`))
      .map((point) => path + point.slice(real.length));
    return points.sort((a, b) => b.length - a.length);
  },
};

/** The kernel writes space, tab, newline and backslash as octal. */
export function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

function escapeOctal(text: string): string {
  return text.replace(/[ \t\n\\]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
