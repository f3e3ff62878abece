import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import { systemMounter } from "./mounter.ts";
import { shareMounts } from "./shared-mounts.ts";

const directory = await mkdtemp(join(tmpdir(), "svc-shared-"));
t.teardown(() => rm(directory, { recursive: true }));

/** The commands of sharing the directory with this table of mounts, and of the end with the second one. */
async function play(before: readonly string[], after: readonly string[] = before): Promise<readonly string[]> {
  const commands: string[] = [];
  let table = before;
  const shared = await shareMounts(directory, silentLogger, {
    readMounts: async () => `${table.join("\n")}\n`,
    run: async (program, args) => commands.push([program, ...args].join(" ").replaceAll(directory, "ROOT")),
  });
  commands.push("end");
  table = after;
  await shared[Symbol.asyncDispose]();
  return commands;
}

const PRIVATE = "1 0 8:1 / / rw,relatime - ext4 /dev/a rw";
const SHARED = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/a rw";
const OWN = `2 1 8:1 ${directory} ${directory} rw,relatime shared:2 - ext4 /dev/a rw`;
const VOLUME = `3 2 0:9 / ${directory}/pods/volume rw shared:3 - tmpfs tmpfs rw`;
const BIND = ["mount --bind ROOT ROOT", "mount --make-rshared ROOT"];

t.test("the directory is mounted on itself and shared where mounts are private", async (t) => {
  t.same(await play([PRIVATE], [PRIVATE, OWN]), [...BIND, "end", "umount --lazy ROOT"]);
  t.same(await play([SHARED]), ["end"], "the mounts are shared already");
  const data = `2 1 8:2 / ${directory} rw - ext4 /dev/b rw`;
  t.same(await play([SHARED, data]), [...BIND, "end"], "a file system of its own, which stays");
});

t.test("a mount that an earlier agent made is used, and stays with what is mounted below it", async (t) => {
  t.same(await play([PRIVATE, OWN]), ["end", "umount --lazy ROOT"]);
  t.same(await play([PRIVATE, OWN, VOLUME]), ["end"]);
  const unfinished = OWN.replace("shared:2 ", "");
  t.same(await play([PRIVATE, unfinished], [PRIVATE, OWN]), ["mount --make-rshared ROOT", "end", "umount --lazy ROOT"]);
});

t.test("volumes of pods that run already are not hidden", async (t) => {
  t.same(await play([PRIVATE, VOLUME]), ["end"]);
});

const skip = process.getuid?.() === 0 ? false : "mounting is not allowed here";

t.test("what is mounted below a copy of the directory appears in it", { skip }, async (t) => {
  const run = (program: string, ...args: readonly string[]) => execFileSync(program, args);
  run("mount", "-t", "tmpfs", "tmpfs", directory);
  t.teardown(() => run("umount", "--recursive", directory));
  run("mount", "--make-private", directory);
  const [root, copy] = [join(directory, "agent"), join(directory, "copy")];
  for (const each of [root, copy, join(root, "volume")]) await mkdir(each);
  const shared = await shareMounts(root, silentLogger);
  await systemMounter.bind(root, copy);
  await systemMounter.tmpfs(join(copy, "volume"), 0);
  t.same(await systemMounter.listMountPoints(root), [join(root, "volume"), root]);
  await systemMounter.unmount(join(root, "volume"));
  t.same(await systemMounter.listMountPoints(copy), [copy]);
  await systemMounter.unmount(copy);
  await shared[Symbol.asyncDispose]();
  t.same(await systemMounter.listMountPoints(directory), [directory]);
});
