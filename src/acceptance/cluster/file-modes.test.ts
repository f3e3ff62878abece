/** Modes of the files of a cluster, as docs/security.md lists them. */
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import t from "tap";
import { findMissingRequirement, programs, root, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();
const page = readFileSync(join(root, "docs/security.md"), "utf8");

/** Paths below the data directory with their modes on the page. */
const promised = page.split("\n").flatMap((line) => {
  const [, paths = "", modes = ""] = line.split("|");
  const mode = /^ (0\d{3})\b/.exec(modes)?.[1];
  if (mode === undefined) return [];
  return [...paths.matchAll(/`([^/`][^`]*)`/g)].map(([, path = ""]) => ({ path, mode: Number.parseInt(mode, 8) }));
});

const SECRET = /-----BEGIN [A-Z ]*PRIVATE KEY-----|client-key-data:|^\s*token: \S/m;
const LARGE_BYTES = 2 ** 20;

/** Whether other users than the owner can access the file. */
function isOpen(file: string, top: string): boolean {
  if ((statSync(file).mode & 0o077) === 0) return false;
  for (let at = dirname(file); at.length > top.length; at = dirname(at)) {
    if ((statSync(at).mode & 0o011) === 0) return false;
  }
  return true;
}

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("svc up gives only the owner access to keys, tokens and the store", async (t) => {
    await using cluster = await TestCluster.create({ program: programs.sources });
    await cluster.start("--stop-pods");
    let there = 0;
    for (const { path, mode } of promised) {
      const file = join(cluster.dataDir, path);
      if (!existsSync(file)) continue;
      there++;
      t.equal(statSync(file).mode & 0o777 & ~mode, 0, `${path} has at most mode ${mode.toString(8)}`);
    }
    t.ok(there >= 10, `${there} of the files exist`);
    for (const name of globSync("**", { cwd: cluster.dataDir, exclude: ["containerd/**", "svc.log"] })) {
      const file = join(cluster.dataDir, name);
      const found = statSync(file, { throwIfNoEntry: false });
      if (found?.isFile() !== true || found.size > LARGE_BYTES || !SECRET.test(readFileSync(file, "latin1"))) continue;
      t.notOk(isOpen(file, cluster.dataDir), `${name} holds a secret`);
    }
    t.notMatch(cluster.log(), SECRET);
    await cluster.stop();
  });
}
