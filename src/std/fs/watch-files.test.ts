import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { watchFiles } from "./watch-files.ts";

t.test("watchFiles() detects files that are written, renamed over, or replaced behind a symbolic link", async (t) => {
  const directory = t.testdir({ one: { "tls.crt": "1" }, two: { "tls.crt": "2" }, plain: "p" });
  await symlink("one", join(directory, "..data"));
  await symlink("..data/tls.crt", join(directory, "tls.crt"));
  const clock = new FakeClock();
  let checks = 0;
  const watching = watchFiles([join(directory, "tls.crt"), join(directory, "plain")], clock, () => checks++);
  const detects = async (what: string, change: () => Promise<void>): Promise<void> => {
    const before = checks;
    await change();
    for (let turn = 0; turn < 500 && checks === before; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      await clock.advance(50);
    }
    t.equal(checks, before + 1, what);
  };
  await detects("written", () => writeFile(join(directory, "plain"), "q"));
  await detects("renamed over", async () => {
    await writeFile(join(directory, "two", "plain"), "r");
    await rename(join(directory, "two", "plain"), join(directory, "plain"));
  });
  await detects("exchanged", async () => {
    await symlink("two", join(directory, "..new"));
    await rename(join(directory, "..new"), join(directory, "..data"));
  });
  watching[Symbol.dispose]();
  t.equal(clock.pending, 0);
});

t.test("watchFiles() checks every minute, and watches a directory that is created later", async (t) => {
  const directory = join(t.testdir(), "later");
  const clock = new FakeClock();
  let checks = 0;
  using _watching = watchFiles([join(directory, "f")], clock, () => checks++);
  await clock.advance(60_000);
  t.equal(checks, 1);
  await mkdir(directory);
  await clock.advance(60_000);
  t.equal(checks, 2);
  await writeFile(join(directory, "f"), "x");
  for (let turn = 0; turn < 500 && checks === 2; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    await clock.advance(10);
  }
  t.equal(checks, 3);
  await rm(directory, { recursive: true });
});
