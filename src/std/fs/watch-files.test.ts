import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { watchDirectory, watchFiles } from "./watch-files.ts";

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
    const wait = async (): Promise<void> => {
      await setTimeout(2);
      await clock.advance(50);
    };
    await until(what, () => checks > before, { timeoutMs: 10_000, wait });
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
  const before = checks;
  await writeFile(join(directory, "server.log"), "a check that logs must not cause another");
  for (let round = 0; round < 10; round++) {
    await setTimeout(5);
    await clock.advance(50);
  }
  t.equal(checks, before, "another file");
  watching[Symbol.dispose]();
  t.equal(clock.pending, 0);
});

t.test("watchDirectory() detects every change", async (t) => {
  const directory = t.testdir();
  const clock = new FakeClock();
  let checks = 0;
  using _watching = watchDirectory(directory, clock, () => checks++);
  for (const name of ["a", "b"]) {
    const before = checks;
    await writeFile(join(directory, name), "x");
    const wait = async (): Promise<void> => {
      await setTimeout(2);
      await clock.advance(50);
    };
    await until("the file is detected", () => checks > before, { timeoutMs: 10_000, wait });
  }
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
  const wait = async (): Promise<void> => {
    await setTimeout(2);
    await clock.advance(10);
  };
  await until("the change is detected", () => checks > 2, { timeoutMs: 10_000, wait });
  t.equal(checks, 3);
  await rm(directory, { recursive: true });
});
