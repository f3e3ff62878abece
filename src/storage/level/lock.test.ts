import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { Database } from "./database.ts";
import { rejectIfOpen } from "./lock.ts";

/** Opens the database in another process. Resolves with what it prints: "open", or the code of its error. */
async function openElsewhere(t: Test, path: string): Promise<{ readonly result: string; kill(): Promise<void> }> {
  const script = `const { Database } = await import(process.argv[1]);
const log = { info() {}, warn() {}, error() {}, v: () => undefined };
await Database.open(process.argv[2], log).then(() => console.log("open"), ({ code }) => console.log(code));
setInterval(() => {}, 1000);`;
  const args = ["--input-type=module", "-e", script, join(import.meta.dirname, "database.ts"), path];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "close");
  };
  t.teardown(kill);
  const [chunk] = await once(child.stdout, "data");
  return { result: String(chunk).trim(), kill };
}

const contentsOf = (path: string): Record<string, string> =>
  Object.fromEntries(readdirSync(path).map((name) => [name, readFileSync(join(path, name), "latin1")]));

t.test("rejectIfOpen() rejects while another process has the database open, and changes no file", async (t) => {
  const path = join(t.testdir(), "store");
  await rejectIfOpen(path);
  const other = await openElsewhere(t, path);
  t.equal(other.result, "open");
  const before = contentsOf(path);
  t.ok(Object.keys(before).includes("LOG"));
  await t.rejects(rejectIfOpen(path), { code: "locked" });
  t.same(contentsOf(path), before);
  await other.kill();
  await rejectIfOpen(path);
  t.same(contentsOf(path), before, "nor when the database is not open");
});

t.test("rejectIfOpen() keeps the lock of this process", async (t) => {
  const path = join(t.testdir(), "store");
  const database = await Database.open(path, silentLogger);
  await t.rejects(rejectIfOpen(path), { code: "locked" });
  await t.rejects(rejectIfOpen(join(path, "..", "store")), { code: "locked" }, "by any of its paths");
  t.equal((await openElsewhere(t, path)).result, "locked");
  await database.close();
  await rejectIfOpen(path);
});
