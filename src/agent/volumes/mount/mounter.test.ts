import { mkdir, mkdtemp, readFile, rm, statfs, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { systemMounter } from "./mounter.ts";

const root = await mkdtemp(join(tmpdir(), "svc-mounter-"));
t.teardown(() => rm(root, { recursive: true }));
const skip = await mayMount();

async function mayMount(): Promise<string | false> {
  const target = join(root, "try");
  await mkdir(target);
  try {
    await systemMounter.tmpfs(target, 0);
    await systemMounter.unmount(target);
    return false;
  } catch {
    return "mounting is not allowed here";
  }
}

t.test(
  "systemMounter.listMountPoints() finds mounts, also through symbolic links, deepest first",
  { skip },
  async (t) => {
    const real = join(root, "real path");
    const linked = join(root, "linked");
    await mkdir(join(real, "a"), { recursive: true });
    await symlink(real, linked);
    t.teardown(async () => {
      for (const point of await systemMounter.listMountPoints(linked)) await systemMounter.unmount(point);
    });
    await systemMounter.tmpfs(join(linked, "a"), 1024 * 1024);
    await mkdir(join(linked, "a/b"));
    await systemMounter.tmpfs(join(linked, "a/b"), 0);
    t.same(await systemMounter.listMountPoints(linked), [join(linked, "a/b"), join(linked, "a")]);
    t.same(await systemMounter.listMountPoints(real), [join(real, "a/b"), join(real, "a")]);
    const { blocks, bsize } = await statfs(join(real, "a"));
    t.equal(blocks * bsize, 1024 * 1024);
    await t.rejects(writeFile(join(real, "a/large"), Buffer.alloc(2 * 1024 * 1024)), { code: "ENOSPC" });
  },
);

t.test("systemMounter.bind() shows a directory at another path until it is unmounted", { skip }, async (t) => {
  const [source, target] = [join(root, "source"), join(root, "target")];
  for (const each of [source, target]) await mkdir(each);
  await writeFile(join(source, "file"), "work");
  await systemMounter.bind(source, target);
  t.equal(await readFile(join(target, "file"), "utf8"), "work");
  t.same(await systemMounter.listMountPoints(target), [target]);
  await systemMounter.unmount(target);
  t.same(await systemMounter.listMountPoints(target), []);
  await t.rejects(readFile(join(target, "file")));
  await t.rejects(systemMounter.unmount(target));
});
