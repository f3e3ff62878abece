import { once } from "node:events";
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { validateHostPath } from "./local/host-path.ts";
import { openSubPath } from "./mount/sub-path.ts";
import { validatePath, writeAtomically } from "./projected/atomic-writer.ts";
import { findUnsupportedSource } from "./volume-manager.ts";

const root = await mkdtemp(join(tmpdir(), "svc-volumes-"));
t.teardown(() => rm(root, { recursive: true }));
const fresh = async (name: string): Promise<string> => {
  const path = join(root, name);
  await mkdir(path);
  return path;
};
const files = (entries: Readonly<Record<string, string>>, mode = 0o644) =>
  new Map(Object.entries(entries).map(([path, text]) => [path, { data: Buffer.from(text), mode }]));

t.test("writeAtomically() links files through ..data", async (t) => {
  const target = await fresh("layout");
  await writeAtomically(target, files({ a: "1", "dir/b": "2" }, 0o400), 0);
  const names = (await readdir(target)).sort();
  t.same(names.slice(1), ["..data", "a", "dir"]);
  t.match(names[0], /^\.\.1970_01_01_00_00_00\./);
  t.equal(await readlink(join(target, "a")), "..data/a");
  t.equal(await readFile(join(target, "dir/b"), "utf8"), "2");
  t.equal((await stat(join(target, "a"))).mode & 0o777, 0o400);
});

t.test("writeAtomically() replaces all files at once and removes the old ones", async (t) => {
  const target = await fresh("update");
  await writeAtomically(target, files({ a: "1", gone: "x" }), 0);
  const before = await readlink(join(target, "..data"));
  t.equal((await writeAtomically(target, files({ a: "1", gone: "x" }), 1000)).changed, false);
  t.equal(await readlink(join(target, "..data")), before);
  t.equal((await writeAtomically(target, files({ a: "2" }), 2000)).changed, true);
  t.equal(await readFile(join(target, "a"), "utf8"), "2");
  const now = await readlink(join(target, "..data"));
  t.same((await readdir(target)).sort(), [now, "..data", "a"].sort());
});

t.test("writeAtomically() shows new files only after `finish`", async (t) => {
  const target = await fresh("finish");
  let seen: readonly string[] = [];
  await writeAtomically(target, files({ a: "1" }), 0, async () => {
    seen = await readdir(target);
  });
  t.match(seen, [/^\.\.1970/], "neither ..data nor a is there");
  await t.rejects(
    writeAtomically(target, files({ a: "2" }), 0, async () => {
      throw new Error("not ours");
    }),
  );
  t.equal(await readFile(join(target, "a"), "utf8"), "1");
  const names = await readdir(target);
  t.equal(names.length, 3, "an unfinished write leaves nothing");
  await mkdir(join(target, "..2026_01_01_00_00_00.1"));
  await writeAtomically(target, files({ a: "3" }), 0);
  t.equal((await readdir(target)).length, 3, "so is what a killed agent left");
});

t.test("writeAtomically() refuses a file below another file", async (t) => {
  const target = await fresh("clash");
  const message = '"a/b/c" cannot be created: "a" is a file';
  for (const payload of [files({ a: "1", "a/b/c": "2" }), files({ "a/b/c": "2", a: "1" })]) {
    await t.rejects(writeAtomically(target, payload, 0), { message });
  }
  t.same(await readdir(target), []);
});

t.test("validatePath() refuses paths that leave the volume", async (t) => {
  for (const path of ["", "/a", "../a", "a/../../b", "..data", "..x/y"]) t.throws(() => validatePath(path), path);
  for (const path of ["a", "a/b", "a..b", "a/..b"]) t.doesNotThrow(() => validatePath(path), path);
});

t.test("openSubPath() creates missing directories and follows links inside the volume", async (t) => {
  const volume = await fresh("inside");
  await (await openSubPath(volume, "x/y")).close();
  t.ok((await stat(join(volume, "x/y"))).isDirectory());
  await symlink("x", join(volume, "link"));
  await using handle = await openSubPath(volume, "link/y");
  t.equal((await handle.stat()).ino, (await stat(join(volume, "x/y"))).ino);
});

t.test("openSubPath() creates directories with the mode of the volume, independent of the umask", async (t) => {
  const volume = await fresh("rights");
  await chmod(volume, 0o2777);
  const before = process.umask(0o077);
  t.teardown(() => void process.umask(before));
  await (await openSubPath(volume, "x/y")).close();
  for (const path of ["x", "x/y"]) t.equal((await stat(join(volume, path))).mode & 0o7777, 0o2777, path);
});

t.test("openSubPath() does not follow names that become links meanwhile", async (t) => {
  const volume = await fresh("race");
  const outside = await fresh("outside");
  await mkdir(join(volume, "a"));
  await symlink(outside, join(volume, "link"));
  let racing = true;
  const race = (async () => {
    // Renames fail when the other side has just created a directory of that name.
    const move = (from: string, to: string) => rename(join(volume, from), join(volume, to)).catch(() => undefined);
    while (racing) {
      await move("a", "aside");
      await move("link", "a");
      await move("a", "link");
      await move("aside", "a");
    }
  })();
  for (let round = 0; round < 200; round++) {
    await openSubPath(volume, `a/made-${round}`).then(
      (handle) => handle.close(),
      () => undefined,
    );
  }
  racing = false;
  await race;
  t.same(await readdir(outside), [], "nothing was made outside the volume");
});

t.test("openSubPath() opens unreadable files", async (t) => {
  const volume = await fresh("socket");
  const server = createServer().listen(join(volume, "s"));
  t.teardown(() => void server.close());
  await once(server, "listening");
  await using handle = await openSubPath(volume, "s");
  t.ok((await handle.stat()).isSocket());
});

t.test("openSubPath() refuses links and paths that leave the volume", async (t) => {
  const volume = await fresh("escape");
  await symlink("/etc", join(volume, "out"));
  await symlink("../inside", join(volume, "up"));
  for (const path of ["out", "out/passwd", "up/x", "../inside", "/etc"]) {
    await t.rejects(openSubPath(volume, path), /leaves the volume/, path);
  }
});

t.test("validateHostPath() throws kubelet's error for a path of another type", async (t) => {
  const dir = await fresh("host");
  const file = join(dir, "file");
  await writeFile(file, "");
  const cases = [
    [dir, "File", "a file"],
    [dir, "Socket", "a socket file"],
    [dir, "BlockDevice", "a block device"],
    [file, "Directory", "a directory"],
    [file, "DirectoryOrCreate", "a directory"],
    [file, "CharDevice", "a character device"],
    [join(dir, "none"), "Directory", "a directory"],
    [join(dir, "none"), "File", "a file"],
  ] as const;
  for (const [path, type, what] of cases) {
    await t.rejects(validateHostPath({ path, type }), {
      message: `hostPath type check failed: ${path} is not ${what}`,
    });
  }
  await validateHostPath({ path: "/dev/null", type: "CharDevice" });
  await validateHostPath({ path: join(dir, "made"), type: "DirectoryOrCreate" });
  await validateHostPath({ path: join(dir, "touched"), type: "FileOrCreate" });
  t.same((await readdir(dir)).sort(), ["file", "made", "touched"]);
});

t.test("findUnsupportedSource() returns the name of an unsupported source", async (t) => {
  t.equal(findUnsupportedSource({ name: "v", nfs: { server: "s", path: "/" } }), undefined);
  t.equal(findUnsupportedSource({ name: "v", iscsi: { targetPortal: "p", iqn: "iqn.a", lun: 0 } }), "iscsi");
  t.equal(findUnsupportedSource({ name: "v", csi: { driver: "d" } }), undefined);
  t.equal(findUnsupportedSource({ name: "v", emptyDir: {} }), undefined);
  const sources = [{ serviceAccountToken: { path: "token" } }, { clusterTrustBundle: { path: "roots" } }];
  t.equal(findUnsupportedSource({ name: "v", projected: { sources } }), "clusterTrustBundle");
});
