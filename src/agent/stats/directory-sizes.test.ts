import { linkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { measureDiskUsage } from "../volumes/local/size-limits.ts";
import { type DirectorySize, DirectorySizes, measureDirectory } from "./directory-sizes.ts";

t.test("measureDirectory() counts what du counts, hard links once", async (t) => {
  const directory = t.testdir({ a: { b: "x".repeat(10_000) }, empty: {} });
  linkSync(join(directory, "a/b"), join(directory, "link"));
  symlinkSync("/", join(directory, "root"));
  writeFileSync(join(directory, "c"), "y".repeat(100_000));
  const usedBytes = await measureDiskUsage(directory);
  t.ok(usedBytes >= 110_000);
  t.same(await measureDirectory(directory), { usedBytes, inodesUsed: 6 });
  t.same(await measureDirectory(directory, 3), { usedBytes, inodesUsed: 6 }, "with du");
  await t.rejects(measureDirectory(join(directory, "absent")), { code: "ENOENT" });
});

t.test("DirectorySizes.read() measures again only when the size is older than requested", async (t) => {
  const clock = new FakeClock();
  let measured = 0;
  const sizes = new DirectorySizes(clock, async () => ({ usedBytes: ++measured, inodesUsed: 1 }));
  t.equal((await sizes.read("/a", 60_000))?.usedBytes, 1);
  await clock.advance(59_000);
  t.equal((await sizes.read("/a", 60_000))?.usedBytes, 1);
  await clock.advance(1_000);
  t.equal((await sizes.read("/a", 60_000))?.usedBytes, 2);
  sizes.retain(new Set());
  t.equal((await sizes.read("/a", 60_000))?.usedBytes, 3);
});

t.test("DirectorySizes.read() does not wait for a directory that takes long, and measures it once", async (t) => {
  const clock = new FakeClock();
  const result = Promise.withResolvers<DirectorySize>();
  let measured = 0;
  const sizes = new DirectorySizes(clock, () => {
    measured++;
    return result.promise;
  });
  const first = sizes.read("/a", 0);
  await clock.advance(1_000);
  t.equal(await first, undefined);
  const second = sizes.read("/a", 0);
  result.resolve({ usedBytes: 7, inodesUsed: 1 });
  t.equal((await second)?.usedBytes, 7);
  t.equal(measured, 1);
});

t.test("DirectorySizes.read() resolves with undefined for a directory that does not exist", async (t) => {
  t.equal(await new DirectorySizes(systemClock).read("/no/such/directory", 0), undefined);
});
