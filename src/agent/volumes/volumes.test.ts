import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { validatePath, writeAtomically } from "./atomic-writer.ts";
import { checkHostPath } from "./host-path.ts";
import { openSubPath } from "./sub-path.ts";
import { unsupportedSource } from "./volume-manager.ts";

const root = await mkdtemp(join(tmpdir(), "svc-volumes-"));
t.teardown(() => rm(root, { recursive: true }));
const fresh = async (name: string): Promise<string> => {
  const path = join(root, name);
  await mkdir(path);
  return path;
};
const files = (entries: Readonly<Record<string, string>>, mode = 0o644) =>
  new Map(Object.entries(entries).map(([path, text]) => [path, { data: Buffer.from(text), mode }]));

t.test("writeAtomically() lays files out behind ..data", async (t) => {
  const target = await fresh("layout");
  await writeAtomically(target, files({ a: "1", "dir/b": "2" }, 0o400), 0);
  const names = (await readdir(target)).sort();
  t.same(names.slice(1), ["..data", "a", "dir"]);
  t.match(names[0], /^\.\.1970_01_01_00_00_00\./);
  t.equal(await readlink(join(target, "a")), "..data/a");
  t.equal(await readFile(join(target, "dir/b"), "utf8"), "2");
  t.equal((await stat(join(target, "a"))).mode & 0o777, 0o400);
});

t.test("writeAtomically() exchanges everything at once and leaves nothing old behind", async (t) => {
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

t.test("validatePath() refuses to leave the volume", async (t) => {
  for (const path of ["", "/a", "../a", "a/../../b", "..data", "..x/y"]) t.throws(() => validatePath(path), path);
  for (const path of ["a", "a/b", "a..b", "a/..b"]) t.doesNotThrow(() => validatePath(path), path);
});

t.test("openSubPath() makes what is missing and follows links that stay inside", async (t) => {
  const volume = await fresh("inside");
  await (await openSubPath(volume, "x/y")).close();
  t.ok((await stat(join(volume, "x/y"))).isDirectory());
  await symlink("x", join(volume, "link"));
  await using handle = await openSubPath(volume, "link/y");
  t.equal((await handle.stat()).ino, (await stat(join(volume, "x/y"))).ino);
});

t.test("openSubPath() refuses links and paths that lead out", async (t) => {
  const volume = await fresh("escape");
  await symlink("/etc", join(volume, "out"));
  await symlink("../inside", join(volume, "up"));
  for (const path of ["out", "out/passwd", "up/x", "../inside", "/etc"]) {
    await t.rejects(openSubPath(volume, path), /leaves the volume/, path);
  }
});

t.test("checkHostPath() says in Kubernetes' words what the path is not", async (t) => {
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
    await t.rejects(checkHostPath({ path, type }), { message: `hostPath type check failed: ${path} is not ${what}` });
  }
  await checkHostPath({ path: "/dev/null", type: "CharDevice" });
  await checkHostPath({ path: join(dir, "made"), type: "DirectoryOrCreate" });
  await checkHostPath({ path: join(dir, "touched"), type: "FileOrCreate" });
  t.same((await readdir(dir)).sort(), ["file", "made", "touched"]);
});

t.test("unsupportedSource() names what cannot be mounted", async (t) => {
  t.equal(unsupportedSource({ name: "v", persistentVolumeClaim: { claimName: "c" } }), "persistentVolumeClaim");
  t.equal(unsupportedSource({ name: "v", csi: { driver: "d" } }), "csi");
  t.equal(unsupportedSource({ name: "v", emptyDir: {} }), undefined);
  const sources = [{ serviceAccountToken: { path: "token" } }, { clusterTrustBundle: { path: "roots" } }];
  t.equal(unsupportedSource({ name: "v", projected: { sources } }), "clusterTrustBundle");
});
