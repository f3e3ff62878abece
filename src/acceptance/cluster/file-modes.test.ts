/** What a cluster leaves on the disk is for root alone, as docs/security.md says. */
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import t from "tap";
import { clusterLack, programs, root, TestCluster } from "./cluster.ts";

const lack = clusterLack();
const page = readFileSync(join(root, "docs/security.md"), "utf8");

/** Path below the data directory, and the mode that the page gives it. */
const promised = page.split("\n").flatMap((line) => {
  const [, paths = "", modes = ""] = line.split("|");
  const mode = /^ (0\d{3})\b/.exec(modes)?.[1];
  if (mode === undefined) return [];
  return [...paths.matchAll(/`([^/`][^`]*)`/g)].map(([, path = ""]) => ({ path, mode: Number.parseInt(mode, 8) }));
});

const SECRET = /-----BEGIN [A-Z ]*PRIVATE KEY-----|client-key-data:|^\s*token: \S/m;
const LARGE_BYTES = 2 ** 20;

/** Whether others than its owner can come to the file. */
function isOpen(file: string, top: string): boolean {
  if ((statSync(file).mode & 0o077) === 0) return false;
  for (let at = dirname(file); at.length > top.length; at = dirname(at)) {
    if ((statSync(at).mode & 0o011) === 0) return false;
  }
  return true;
}

if (lack !== undefined) console.error(`Whole clusters are left out: ${lack}.`);
else {
  t.test("svc up keeps keys, tokens and its store to their owner", async (t) => {
    await using cluster = await TestCluster.create({ program: programs.sources });
    await cluster.start("--stop-pods");
    let there = 0;
    for (const { path, mode } of promised) {
      const file = join(cluster.dataDir, path);
      if (!existsSync(file)) continue;
      there++;
      t.equal(statSync(file).mode & 0o777 & ~mode, 0, `${path} is no more open than ${mode.toString(8)}`);
    }
    t.ok(there >= 10, `${there} of the files are there`);
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
