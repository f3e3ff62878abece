import { readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { OpenFiles } from "./open-files.ts";

/** Names of the directory's files that this process has open. */
function listOpen(directory: string): readonly string[] {
  const targets = readdirSync("/proc/self/fd").map((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`);
    } catch {
      return "";
    }
  });
  return targets.filter((target) => target.startsWith(`${directory}/`)).map((target) => target.slice(directory.length));
}

t.test("a file is read anew each time, and stays open while it is used", async (t) => {
  const directory = t.testdir({ usage: "1\n", other: "2\n" });
  const clock = new FakeClock();
  using files = new OpenFiles(clock);
  const path = join(directory, "usage");
  t.equal(files.read(path), "1\n");
  t.equal(files.read(join(directory, "other")), "2\n");
  writeFileSync(path, "23\n");
  t.equal(files.read(path), "23\n");
  t.same(listOpen(directory).toSorted(), ["/other", "/usage"]);
  await clock.advance(60_000);
  t.equal(files.read(path), "23\n");
  await clock.advance(60_000);
  t.same(listOpen(directory), ["/usage"], "the other one was not read for a minute");
  files[Symbol.dispose]();
  t.same(listOpen(directory), []);
  t.equal(clock.pending, 0);
});

t.test("a file that does not exist, or cannot be read, is undefined and not kept open", (t) => {
  const directory = t.testdir({ folder: {} });
  using files = new OpenFiles(new FakeClock());
  t.equal(files.read(join(directory, "missing")), undefined);
  // A directory can be opened, but not read, as the file of a removed cgroup.
  t.equal(files.read(join(directory, "folder")), undefined);
  t.equal(files.read(join(directory, "folder")), undefined);
  t.same(listOpen(directory), []);
  t.end();
});
