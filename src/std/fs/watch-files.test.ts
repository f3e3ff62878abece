import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { watchFiles } from "./watch-files.ts";

t.test("watchFiles() hears of files that are written, renamed over, and exchanged behind a link", async (t) => {
  const directory = t.testdir({ one: { "tls.crt": "1" }, two: { "tls.crt": "2" }, plain: "p" });
  await symlink("one", join(directory, "..data"));
  await symlink("..data/tls.crt", join(directory, "tls.crt"));
  const clock = new FakeClock();
  let looks = 0;
  const watching = watchFiles([join(directory, "tls.crt"), join(directory, "plain")], clock, () => looks++);
  const heard = async (what: string, change: () => Promise<void>): Promise<void> => {
    const before = looks;
    await change();
    for (let turn = 0; turn < 500 && looks === before; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      await clock.advance(50);
    }
    t.equal(looks, before + 1, what);
  };
  await heard("written", () => writeFile(join(directory, "plain"), "q"));
  await heard("renamed over", async () => {
    await writeFile(join(directory, "two", "plain"), "r");
    await rename(join(directory, "two", "plain"), join(directory, "plain"));
  });
  await heard("exchanged", async () => {
    await symlink("two", join(directory, "..new"));
    await rename(join(directory, "..new"), join(directory, "..data"));
  });
  watching[Symbol.dispose]();
  t.equal(clock.pending, 0);
});

t.test("watchFiles() looks every minute, and finds a directory that came later", async (t) => {
  const directory = join(t.testdir(), "later");
  const clock = new FakeClock();
  let looks = 0;
  using _watching = watchFiles([join(directory, "f")], clock, () => looks++);
  await clock.advance(60_000);
  t.equal(looks, 1);
  await mkdir(directory);
  await clock.advance(60_000);
  t.equal(looks, 2);
  await writeFile(join(directory, "f"), "x");
  for (let turn = 0; turn < 500 && looks === 2; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    await clock.advance(10);
  }
  t.equal(looks, 3);
  await rm(directory, { recursive: true });
});
