import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Script } from "node:vm";
import t, { type Test } from "tap";
import { CompiledCode } from "./compiled-code.ts";

const sources: Readonly<Record<string, string>> = {
  "a.js": "(function () { return 1 + 1; })",
  "b.js": "(function (name) { return 'b ' + name; })",
};

/** Compiles the sources as a start does; returns those whose code came from the file. */
async function start(path: string, names = Object.keys(sources)): Promise<string[]> {
  const compiled = new CompiledCode(path);
  const found: string[] = [];
  for (const name of names) {
    const cachedData = compiled.find(name);
    const script = new Script(sources[name]!, { filename: name, ...(cachedData && { cachedData }) });
    script.runInThisContext()();
    compiled.add(name, script, cachedData);
    if (cachedData !== undefined && script.cachedDataRejected === false) found.push(name);
  }
  await compiled.write();
  return found;
}

async function setUp(t: Test) {
  const directory = join(t.testdir(), "cache", "svc");
  const path = join(directory, "svc-up-1");
  t.same(await start(path), [], "the first start compiles all");
  return { directory, path, inode: () => lstatSync(path).ino };
}

t.test("the second start compiles nothing, and leaves the private file", async (t) => {
  const { directory, path, inode } = await setUp(t);
  t.equal(lstatSync(directory).mode & 0o777, 0o700);
  t.equal(lstatSync(path).mode & 0o777, 0o600);
  const before = inode();
  t.same(await start(path), ["a.js", "b.js"]);
  t.equal(inode(), before);
  t.same(readdirSync(directory), ["svc-up-1"]);
});

t.test("a script that the file lacks is added to the others", async (t) => {
  const path = join(t.testdir(), "svc", "svc-up-1");
  await start(path, ["a.js"]);
  t.same(await start(path, ["b.js"]), []);
  t.same(await start(path), ["a.js", "b.js"]);
});

t.test("what is no private, intact file is ignored and replaced", async (t) => {
  const changes: Readonly<Record<string, (path: string) => void>> = {
    truncated: (path) => truncateSync(path, 100),
    empty: (path) => truncateSync(path, 0),
    "other bytes": (path) => writeFileSync(path, "x".repeat(1000)),
    "writable by others": (path) => chmodSync(path, 0o666),
    "a link": (path) => {
      renameSync(path, `${path}-2`);
      symlinkSync(`${path}-2`, path);
    },
  };
  for (const [name, change] of Object.entries(changes)) {
    await t.test(name, async (t) => {
      const { path } = await setUp(t);
      change(path);
      t.same(await start(path), []);
      t.same(await start(path), ["a.js", "b.js"]);
    });
  }
});

t.test("each flipped byte costs an entry or all of them, and nothing else", async (t) => {
  const { path } = await setUp(t);
  const intact = readFileSync(path);
  for (let at = 0; at < intact.length; at += 37) {
    const damaged = Buffer.from(intact);
    damaged[at]! ^= 0x10;
    writeFileSync(path, damaged);
    const compiled = new CompiledCode(path);
    const lost = Object.keys(sources).filter((name) => compiled.find(name) === undefined);
    if (lost.length === 0) t.fail(`the flipped byte ${at} is not detected`);
  }
  await start(path);
  t.same(await start(path), ["a.js", "b.js"], "the file is intact again");
});

t.test("a directory that others can write gets no file", async (t) => {
  const directory = join(t.testdir(), "svc");
  mkdirSync(directory);
  chmodSync(directory, 0o777);
  await start(join(directory, "svc-up-1"));
  t.same(readdirSync(directory), []);
});

t.test("the eight newest files remain", async (t) => {
  const directory = join(t.testdir(), "svc");
  mkdirSync(directory, { mode: 0o700 });
  for (let age = 1; age <= 12; age++) {
    const path = join(directory, `old-${age}`);
    writeFileSync(path, "");
    utimesSync(path, 0, 1_700_000_000 - age);
  }
  await start(join(directory, "svc-up-1"));
  t.same(readdirSync(directory).sort(), ["old-1", "old-2", "old-3", "old-4", "old-5", "old-6", "old-7", "svc-up-1"]);
});

t.test("without a path nothing is kept, and errors of writing reach the caller", async (t) => {
  const compiled = new CompiledCode(undefined);
  compiled.add("a.js", new Script(sources["a.js"]!), undefined);
  await compiled.write();
  const file = join(t.testdir({ file: "" }), "file");
  const failing = new CompiledCode(join(file, "svc-up-1"));
  failing.add("a.js", new Script(sources["a.js"]!), undefined);
  await t.rejects(failing.write(), { code: /ENOTDIR|EEXIST/ });
});
