import { mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { makeDirectory } from "./make-directory.ts";

t.test("makeDirectory() creates missing parents with its mode and resolves with the topmost one", async (t) => {
  const top = await mkdtemp(join(tmpdir(), "svc-directory-"));
  t.teardown(() => rm(top, { recursive: true }));
  t.equal(await makeDirectory(join(top, "a/b/c"), 0o700), join(top, "a"));
  for (const name of ["a", "a/b", "a/b/c"]) t.equal((await stat(join(top, name))).mode & 0o777, 0o700, name);
  t.equal(await makeDirectory(join(top, "a/b/c"), 0o755), undefined);
  t.equal((await stat(join(top, "a/b/c"))).mode & 0o777, 0o700, "what is there is left as it is");
  await Promise.all([makeDirectory(join(top, "x/y"), 0o700), makeDirectory(join(top, "x/y"), 0o700)]);
  t.ok((await stat(join(top, "x/y"))).isDirectory(), "two at once do not hinder each other");
});

t.test("makeDirectory() rejects with the file system's error", async (t) => {
  const top = await mkdtemp(join(tmpdir(), "svc-directory-"));
  t.teardown(() => rm(top, { recursive: true }));
  await writeFile(join(top, "file"), "");
  await symlink("nowhere", join(top, "dangling"));
  await t.rejects(makeDirectory(join(top, "file"), 0o700), { code: "EEXIST" });
  await t.rejects(makeDirectory(join(top, "file/below"), 0o700), { code: "ENOTDIR" });
  await t.rejects(makeDirectory(join(top, "dangling"), 0o700), { code: "EEXIST" });
  await t.rejects(makeDirectory(join(top, "long".repeat(100)), 0o700), { code: "ENAMETOOLONG" });
  await t.rejects(makeDirectory("/proc/svc-nowhere/below", 0o700), { code: "ENOENT" });
});
