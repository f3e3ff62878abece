import { lstat, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createProjectQuotas } from "./project-quotas.ts";
import { ProvisionedVolumeError, ProvisionedVolumes } from "./provisioned-volumes.ts";

const NAME = "pvc-01234567-89ab-cdef-0123-456789abcdef";
const noQuotas = {
  limit: async () => false,
  monitor: async () => false,
  readUsage: async () => undefined,
  clear: async () => {},
};

async function openVolumes(t: Pick<Test, "teardown">, mountPoints: (path: string) => readonly string[] = () => []) {
  const directory = await mkdtemp(join(tmpdir(), "svc-volumes-"));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const root = join(directory, "local-volumes");
  const mounter = { listMountPoints: async (path: string) => mountPoints(path) };
  const podsDir = join(directory, "pods");
  return { directory, root, volumes: new ProvisionedVolumes({ root, mounter, podsDir, quotas: noQuotas }) };
}

t.test("a volume is a directory that all users may write to, below one that only root may enter", async (t) => {
  const { root, volumes } = await openVolumes(t);
  t.same(await volumes.ensure(NAME, 1024), { path: join(root, NAME), isSizeEnforced: false });
  await writeFile(join(root, NAME, "kept"), "data");
  await volumes.ensure(NAME, 2048);
  t.same(await readdir(join(root, NAME)), ["kept"], "it exists already");
  t.equal((await lstat(join(root, NAME))).mode & 0o777, 0o777);
  t.equal((await lstat(root)).mode & 0o777, 0o700);
});

t.test("a volume is removed with its content, and not what symbolic links in it point to", async (t) => {
  const { directory, root, volumes } = await openVolumes(t);
  await mkdir(join(directory, "other"));
  await writeFile(join(directory, "other", "kept"), "data");
  await volumes.ensure(NAME, 1024);
  await mkdir(join(root, NAME, "a", "b"), { recursive: true });
  await symlink(join(directory, "other"), join(root, NAME, "a", "link"));
  await volumes.remove(NAME);
  t.same(await readdir(root), []);
  t.same(await readdir(join(directory, "other")), ["kept"]);
  await t.resolves(volumes.remove(NAME), "it is gone already");
});

t.test("an interrupted removal is completed by the next one", async (t) => {
  const { root, volumes } = await openVolumes(t);
  await mkdir(join(root, `.removed-${NAME}`, "rest"), { recursive: true });
  await volumes.remove(NAME);
  t.same(await readdir(root), []);
});

t.test("names that are not of volumes, links and files are rejected", async (t) => {
  const { directory, root, volumes } = await openVolumes(t);
  for (const name of ["..", ".", "", "pvc-1", `${NAME}/..`, `../${NAME}`, `${NAME}\n`, NAME.toUpperCase()]) {
    await t.rejects(volumes.ensure(name, 1), ProvisionedVolumeError, name);
    await t.rejects(volumes.remove(name), ProvisionedVolumeError, name);
  }
  await mkdir(root);
  await symlink(directory, join(root, NAME));
  await t.rejects(volumes.ensure(NAME, 1), ProvisionedVolumeError, "a symbolic link");
  await t.rejects(volumes.remove(NAME), ProvisionedVolumeError, "a symbolic link");
  t.ok((await lstat(directory)).isDirectory());
});

t.test("a volume that a pod has mounted, or that contains a mount point, is not removed", async (t) => {
  const points = new Map<string, string>();
  const { directory, root, volumes } = await openVolumes(t, (path) => [points.get(path) ?? []].flat());
  const path = join(root, NAME);
  await volumes.ensure(NAME, 1);
  points.set(path, join(path, "inside"));
  await t.rejects(volumes.remove(NAME), { message: /contains the mount point/ });
  points.clear();
  // A bind mount has the device and the inode of the directory, as the directory itself.
  points.set(join(directory, "pods"), path);
  await t.rejects(volumes.remove(NAME), { message: /is mounted for a pod/ });
  points.set(join(directory, "pods"), directory);
  await volumes.remove(NAME);
  t.same(await readdir(root), [], "another volume is mounted");
});

interface QuotaRun {
  readonly enforced: boolean;
  readonly commands: readonly string[];
  readonly failures: readonly string[];
}

async function limit(mounts: string, directory: string, fails = false, inode = 77): Promise<QuotaRun> {
  const commands: string[] = [];
  const failures: string[] = [];
  const quotas = createProjectQuotas({
    readMounts: async () => mounts,
    run: async (program, args) => {
      commands.push([program, ...args].join(" "));
      if (fails) throw new Error(`${program} not found`);
      return "";
    },
    inodeOf: async () => inode,
    onFailure: (_, error) => failures.push(String(error)),
  });
  return { enforced: await quotas.limit(directory, 1_048_577), commands, failures };
}

const ROOT = "22 1 8:1 / / rw - ext4 /dev/a rw";
const mountOf = (type: string, options: string) =>
  `${ROOT}\n30 22 8:2 / /data rw shared:1 - ${type} /dev/b ${options}\n`;

t.test("sizes are enforced by project quotas where the file system has them enabled", async (t) => {
  t.same(await limit(mountOf("ext4", "rw,prjquota"), "/data/v"), {
    enforced: true,
    commands: ["chattr -p 77 +P /data/v", "setquota -P 77 0 1025 0 0 /data"],
    failures: [],
  });
  t.same(await limit(mountOf("xfs", "rw,prjquota"), "/data/v"), {
    enforced: true,
    commands: ["xfs_quota -x -c project -s -p /data/v 77 /data", "xfs_quota -x -c limit -p bhard=1025k 77 /data"],
    failures: [],
  });
  for (const [mounts, directory] of [
    [mountOf("ext4", "rw"), "/data/v"],
    [mountOf("xfs", "rw,prjquota"), "/database/v"],
    [mountOf("btrfs", "rw,prjquota"), "/data/v"],
    ["", "/data/v"],
  ] as const) {
    t.same(await limit(mounts, directory), { enforced: false, commands: [], failures: [] }, mounts);
  }
});

t.test("a size that cannot be enforced is reported, and the volume is used without", async (t) => {
  const missing = await limit(mountOf("ext4", "rw,prjquota"), "/data/v", true);
  t.same([missing.enforced, missing.failures], [false, ["Error: chattr not found"]]);
  const spaced = await limit(mountOf("xfs", "rw,prjquota"), "/data/a b");
  t.match([spaced.enforced, spaced.failures[0]], [false, /cannot use the path/]);
  const large = await limit(mountOf("xfs", "rw,prjquota"), "/data/v", false, 2 ** 32);
  t.match([large.enforced, large.failures[0]], [false, /is no project identifier/]);
});
