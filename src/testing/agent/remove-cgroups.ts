import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const ROOT = "/sys/fs/cgroup";

/** Removes a cgroup and those below it from every hierarchy. They must have no processes. */
export async function removeCgroups(path: string): Promise<void> {
  const hierarchies = [ROOT, ...readdirSync(ROOT).map((name) => join(ROOT, name))];
  const directories = hierarchies.map((hierarchy) => join(hierarchy, path));
  // `find` fails for hierarchies without the cgroup.
  await promisify(execFile)("find", [...directories, "-depth", "-type", "d", "-delete"]).catch(() => undefined);
}
