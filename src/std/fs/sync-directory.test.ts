import { join } from "node:path";
import t from "tap";
import { syncDirectory } from "./sync-directory.ts";

t.test("syncDirectory() syncs a directory, and rejects for one that does not exist", async (t) => {
  const directory = t.testdir({ file: "" });
  await syncDirectory(directory);
  await t.rejects(syncDirectory(join(directory, "missing")), { code: "ENOENT" });
});
