/** The pod's own cgroup, which the runtime makes on the way to the containers' and nobody else removes. */
import { readdir, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";

const hierarchy = "/sys/fs/cgroup";
const tiers = ["", "besteffort", "burstable"];

/** Directories of the pod's cgroup: one per controller with cgroup v1, at most one with v2. */
export async function cgroupsOf(uid: string, root: string): Promise<readonly string[]> {
  // With v2 these are plain cgroups of the root; none of them holds our path, so looking there costs nothing.
  const tops = [hierarchy, ...(await readdir(hierarchy).catch(() => [])).map((name) => join(hierarchy, name))];
  const paths = tops.flatMap((top) => tiers.map((tier) => join(top, root, "kubepods", tier, `pod${uid}`)));
  const found: string[] = [];
  for (const path of paths) {
    if (
      await stat(path).then(
        (each) => each.isDirectory(),
        () => false,
      )
    )
      found.push(path);
  }
  return found;
}

/** Best effort: a cgroup that is still in use stays, and costs little. */
export async function removeCgroups(uid: string, root: string): Promise<void> {
  for (const path of await cgroupsOf(uid, root)) {
    for (const name of await readdir(path, { withFileTypes: true }).catch(() => [])) {
      if (name.isDirectory()) await rmdir(join(path, name.name)).catch(() => undefined);
    }
    await rmdir(path).catch(() => undefined);
  }
}
