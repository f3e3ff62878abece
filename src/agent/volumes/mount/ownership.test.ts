import { chmod, lstat, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { applyFsGroup, reportProgress } from "./ownership.ts";

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

t.test("applyFsGroup() lets the group write, and new files inherit the group", { skip }, async (t) => {
  const root = await tree();
  const outside = await lstat("/etc/hostname");
  await applyFsGroup(root, { group: 2000, readOnly: false });
  const of = async (path: string) => {
    const { gid, mode } = await lstat(join(root, path));
    return [gid, (mode & 0o7777).toString(8)];
  };
  t.same(await of("dir"), [2000, "2770"]);
  t.same(await of("dir/file"), [2000, "660"]);
  t.same((await of("link"))[0], 2000);
  t.same([(await lstat("/etc/hostname")).gid, (await lstat("/etc/hostname")).mode], [outside.gid, outside.mode]);
});

t.test("applyFsGroup() with readOnly lets the group read only", { skip }, async (t) => {
  const root = await tree();
  await applyFsGroup(root, { group: 2000, readOnly: true });
  t.equal((await lstat(join(root, "dir"))).mode & 0o7777, 0o2750);
  t.equal((await lstat(join(root, "dir/file"))).mode & 0o7777, 0o440);
});

t.test("applyFsGroup() does not follow names that become links meanwhile", { skip }, async (t) => {
  const [root, aside] = [await tree(), await tree()];
  const outside = join(aside, "dir/file");
  const before = await lstat(outside);
  let racing = true;
  const race = (async () => {
    while (racing) {
      await symlink(outside, join(aside, "new"));
      await rename(join(aside, "new"), join(root, "dir/file"));
      await writeFile(join(aside, "new"), "");
      await rename(join(aside, "new"), join(root, "dir/file"));
    }
  })();
  for (let round = 0; round < 500; round++) await applyFsGroup(root, { group: 2000, readOnly: false });
  racing = false;
  await race;
  const { gid, mode } = await lstat(outside);
  t.same([gid, mode], [before.gid, before.mode], "files outside of the volume are unchanged");
});

t.test("applyFsGroup() rejects directories that are nested too deep", { skip }, async (t) => {
  const root = await tree();
  await mkdir(join(root, ...Array<string>(600).fill("d")), { recursive: true });
  await t.rejects(applyFsGroup(root, { group: 2000, readOnly: false }), /nested deeper/);
});

t.test("reportProgress() records events when the change takes long", async (t) => {
  const clock = new FakeClock();
  const events: string[] = [];
  const waiting = {
    pod: { metadata: { name: "web", uid: "u" } },
    name: "data",
    clock,
    events: { recordPodEvent: (_: unknown, ...event: readonly unknown[]) => void events.push(event.join(" ")) },
  };
  const { promise, resolve } = Promise.withResolvers<void>();
  const reported = reportProgress(promise, { files: 7 }, waiting);
  await clock.advance(29_000);
  t.same(events, []);
  await clock.advance(61_000);
  resolve();
  await reported;
  t.match(events[0], /^Warning VolumePermissionChangeInProgress .* u\/volumes\/data is taking longer than expected/);
  t.match(events[1], /is in progress, processed 7 files\.$/);
  t.equal(clock.pending, 0);
});
