/** The notices and the version of a built program. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import t from "tap";
import { run } from "./licenses.ts";

const root = new URL("../../../", import.meta.url).pathname;
const directory = mkdtempSync(join(tmpdir(), "svc-licenses-"));
t.teardown(() => rmSync(directory, { recursive: true }));
execFileSync(process.execPath, [join(root, "build.mjs"), "--out", directory], { stdio: "ignore" });
const program = join(directory, "svc");
const env = { ...process.env, SVC_NODE: process.execPath };
const runBuilt = (...words: string[]) => execFileSync(program, words, { encoding: "utf8", env, maxBuffer: 2 ** 24 });

/** The names of the npm packages in the source positions of the parts of dist/svc. */
function packagesInPositions(): readonly string[] {
  const text = readFileSync(program, "latin1");
  const lines = text.trimEnd().split("\n");
  const offsets = JSON.parse(lines.at(-2) ?? "") as Readonly<Record<string, readonly [start: number, length: number]>>;
  const names = Object.entries(offsets)
    .filter(([name]) => name.endsWith(".positions"))
    .flatMap(([name, [start, length]]) => {
      const part = text.slice(start + name.length + 3, start + length);
      const [sources = "[]"] = gunzipSync(Buffer.from(part, "base64")).toString().split("\n");
      return (JSON.parse(sources) as string[]).flatMap(
        (source) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(source)?.[1] ?? [],
      );
    });
  // The source maps of some packages have paths of their authors' build directories.
  return [...new Set(names)].filter((name) => existsSync(join(root, "node_modules", name, "package.json"))).sort();
}

t.test("svc licenses names every bundled package and contains its license", async (t) => {
  const notices = runBuilt("licenses");
  t.equal(notices, readFileSync(join(directory, "THIRD-PARTY-NOTICES.txt"), "utf8"), "also through a pipe");
  const packages = packagesInPositions();
  t.ok(packages.length > 20, `${packages.length} packages`);
  for (const name of packages) {
    const { version } = JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8"));
    t.ok(notices.includes(`\n${name} ${version} (`), name);
    const file = join(root, "node_modules", name, "LICENSE");
    if (existsSync(file)) t.ok(notices.includes(readFileSync(file, "utf8").trim()), `the license of ${name}`);
  }
  for (const native of ["leveldb", "snappy"])
    t.ok(notices.includes(`\n${native} (in the native code of classic-level)`));
  t.notMatch(notices, /\n(?:esbuild|typescript|tap) \d/, "development tools are not in the program");
});

t.test("svc version --output json has the commit and its date", async (t) => {
  const versions = JSON.parse(runBuilt("version", "--output", "json"));
  const git = (...words: string[]) => spawnSync("git", ["-C", root, ...words], { encoding: "utf8" }).stdout.trim();
  if (git("rev-parse", "HEAD") === "") {
    t.match(versions, { gitCommit: /^(?:[0-9a-f]{40})?$/, gitTreeState: /^(?:archive)?$/ }, "outside a checkout");
    return;
  }
  t.match(versions, { gitCommit: /^[0-9a-f]{40}$/, gitTreeState: /^(?:clean|dirty)$/ });
  const date = Number(git("show", "-s", "--format=%ct", versions.gitCommit));
  t.equal(Date.parse(versions.buildDate), date * 1000);
  t.match(versions.buildDate, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
});

t.test("git archive writes the commit and its date into the build program", async (t) => {
  const { stdout } = spawnSync("git", ["-C", root, "archive", "HEAD", "build.mjs"], { encoding: "latin1" });
  if (stdout === "") return t.comment("Skipped: no checkout");
  t.match(stdout, /^const archivedCommit = "[0-9a-f]{40} \d+";$/m);
});

t.test("an old Node.js that runs the file gets one sentence", async (t) => {
  const old = `Object.defineProperty(process.versions, "node", { value: "20.20.2" });require(process.argv[1])`;
  // Without the module hooks that tap adds to Node.js' options.
  const words = ["-u", "NODE_OPTIONS", process.execPath, "-e", old, program];
  const { status, stderr } = spawnSync("env", words, { encoding: "utf8" });
  t.equal(status, 127);
  t.match(stderr, /^svc: needs Node\.js \d+\.\d+ or newer: .*SVC_NODE may name it\n$/);
});

t.test("svc licenses refuses arguments, and has no notices when it runs from sources", async (t) => {
  const write = t.captureFn(() => true);
  t.intercept(process.stderr, "write", { value: write });
  t.equal(await run(["all"]), 1);
  t.equal(await run([]), 1);
  t.match(write.args(), [[/unknown argument "all"/], [/only built programs contain notices/]]);
});
