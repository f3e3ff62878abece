import { chmod, lstat, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { giveToGroup } from "./ownership.ts";

async function tree(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "svc-ownership-"));
  t.teardown(() => rm(root, { recursive: true }));
  await mkdir(join(root, "dir"));
  await writeFile(join(root, "dir/file"), "");
  await chmod(join(root, "dir"), 0o700);
  await chmod(join(root, "dir/file"), 0o400);
  await symlink("/etc/hostname", join(root, "link"));
  return root;
}

const skip = process.getuid?.() === 0 ? false : "only root gives files away";

t.test("giveToGroup() lets the group write what is its, and inherit it", { skip }, async (t) => {
  const root = await tree();
  const outside = await lstat("/etc/hostname");
  await giveToGroup(root, { group: 2000, readOnly: false });
  const of = async (path: string) => {
    const { gid, mode } = await lstat(join(root, path));
    return [gid, (mode & 0o7777).toString(8)];
  };
  t.same(await of("dir"), [2000, "2770"]);
  t.same(await of("dir/file"), [2000, "660"]);
  t.same((await of("link"))[0], 2000);
  t.same([(await lstat("/etc/hostname")).gid, (await lstat("/etc/hostname")).mode], [outside.gid, outside.mode]);
});

t.test("giveToGroup() lets the group only read what the agent writes", { skip }, async (t) => {
  const root = await tree();
  await giveToGroup(root, { group: 2000, readOnly: true });
  t.equal((await lstat(join(root, "dir"))).mode & 0o7777, 0o2750);
  t.equal((await lstat(join(root, "dir/file"))).mode & 0o7777, 0o440);
});
