import { execFileSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import t from "tap";
import { loadAddon } from "./native.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-native-"));
t.teardown(() => rmSync(directory, { recursive: true }));

/**
 * Opens a descriptor that stays open, so that each test loads /proc/self/fd/N with another N: the loader returns the
 * library that it loaded from a path before. (The program loads one addon, once.)
 */
function takeDescriptor(): void {
  const descriptor = openSync("/dev/null", "r");
  t.teardown(() => closeSync(descriptor));
}

function addonBytes(): Buffer | undefined {
  const home = dirname(createRequire(import.meta.url).resolve("classic-level/package.json"));
  const prebuild = join(home, "prebuilds", `${process.platform}-${process.arch}`);
  const name = existsSync(prebuild) ? readdirSync(prebuild).find((name) => !name.includes("musl")) : undefined;
  return name === undefined ? undefined : readFileSync(join(prebuild, name));
}

t.test("loadAddon() loads the addon from bytes and leaves no file behind", async (t) => {
  takeDescriptor();
  const bytes = addonBytes();
  if (bytes === undefined) {
    console.log("# classic-level has no build for this platform: 2 checks left out");
    return;
  }
  t.match(loadAddon(bytes, { directories: [directory] }), { db_init: Function, db_open: Function });
  t.same(readdirSync(directory), []);
});

t.test("loadAddon() tries the next method and the next directory after a failure", async (t) => {
  const missing = join(directory, "missing");
  const paths: string[] = [];
  const dlopen = (module: { exports: unknown }, path: string): void => {
    paths.push(path);
    if (paths.length < 3) throw new Error("failed to map segment from shared object");
    t.equal(readFileSync(path, "utf8"), "bytes");
    module.exports = { loaded: true };
  };
  const loaded = loadAddon(Buffer.from("bytes"), { directories: [missing, directory, tmpdir()], dlopen });
  t.same(loaded, { loaded: true });
  t.match(paths, [/^\/proc\/self\/fd\/\d+$/, `${directory}/.svc-addon-`, /^\/proc\/self\/fd\/\d+$/]);
  t.same(readdirSync(directory), []);
});

t.test("loadAddon() fails with each directory it tried", async (t) => {
  takeDescriptor();
  const missing = join(directory, "missing");
  t.throws(() => loadAddon(Buffer.from("x"), { directories: [missing, directory] }), {
    message: /^Cannot load the embedded store's native code: .*noexec.* Tried .*missing: ENOENT.*svc-native-.*: /,
  });
});

t.test("loadAddon() skips a directory mounted noexec", async (t) => {
  takeDescriptor();
  const bytes = addonBytes();
  const noexec = join(directory, "noexec");
  mkdirSync(noexec);
  chmodSync(noexec, 0o700);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "noexec,size=8m", "tmpfs", noexec], { stdio: "ignore" });
  } catch {
    console.log("# No file system can be mounted here: the check of noexec is left out");
    return;
  }
  t.teardown(() => execFileSync("umount", [noexec]));
  if (bytes === undefined) return;
  t.throws(() => loadAddon(bytes, { directories: [noexec] }), { message: /failed to map segment/ });
  t.match(loadAddon(bytes, { directories: [noexec, directory] }), { db_init: Function });
});
