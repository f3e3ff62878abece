import t from "tap";
import { lockDataDir } from "./data-dir-lock.ts";

t.test("lockDataDir() lets one process in and names it to the next", async (t) => {
  const directory = t.testdir({});
  const lock = await lockDataDir(directory);
  await t.rejects(lockDataDir(directory), new RegExp(`svc already runs there \\(process ${process.pid}\\)`));
  lock[Symbol.dispose]();
  (await lockDataDir(directory))[Symbol.dispose]();
});
