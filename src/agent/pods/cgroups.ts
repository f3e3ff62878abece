/** The pod's own cgroup, which the runtime makes on the way to the containers' and nobody else removes. */
import { readdir, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";

const hierarchy = "/sys/fs/cgroup";
const tiers = ["", "besteffort", "burstable"];

/** Directories of the pod's cgroup: one per controller with cgroup v1, at most one with v2. */
export async function cgroupsOf(uid: string, root: string): Promise<readonly string[]> {
  const paths = (await tops(root)).flatMap((top) => tiers.map((tier) => join(top, tier, `pod${uid}`)));
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

/** With v2 the hierarchy's children are plain cgroups; none of them holds our path, so looking there costs nothing. */
async function tops(root: string): Promise<readonly string[]> {
  const controllers = await readdir(hierarchy).catch(() => []);
  return [hierarchy, ...controllers.map((name) => join(hierarchy, name))].map((top) => join(top, root, "kubepods"));
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

/** The pods', and then those that held them, unless somebody else's pods are in there. */
export async function removeAllCgroups(uids: Iterable<string>, root: string): Promise<void> {
  for (const uid of uids) await removeCgroups(uid, root);
  for (const top of await tops(root)) {
    for (const tier of tiers.toReversed()) await rmdir(join(top, tier)).catch(() => undefined);
  }
}
