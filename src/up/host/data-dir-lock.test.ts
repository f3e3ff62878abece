import t from "tap";
import { lockDataDir } from "./data-dir-lock.ts";

t.test("lockDataDir() allows one process and reports its id to the next", async (t) => {
  const directory = t.testdir({});
  const lock = await lockDataDir(directory);
  await t.rejects(lockDataDir(directory), new RegExp(`svc already uses it \\(process ${process.pid}\\)`));
  lock[Symbol.dispose]();
  (await lockDataDir(directory))[Symbol.dispose]();
});
