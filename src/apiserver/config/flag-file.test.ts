import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { loadDynamicFile } from "./dynamic-file.ts";
import { CONFIGURATION_BYTES_MAX, readFlagFile } from "./flag-file.ts";

t.test("readFlagFile() rejects files that are missing or too large, and names flag and file", async (t) => {
  const path = join(t.testdir(), "file");
  await t.rejects(readFlagFile("--x", path), { message: `Cannot read --x="${path}": there is no such file` });
  writeFileSync(path, "content");
  t.equal(await readFlagFile("--x", path), "content");
  // Without blocks on the disk.
  truncateSync(path, 2 ** 34);
  const message = `Cannot read --x="${path}": Error: it is larger than 16777216 bytes`;
  await t.rejects(readFlagFile("--x", path), { message });
});

t.test("loadDynamicFile() does not read configurations that are too large", async (t) => {
  const path = join(t.testdir(), "file");
  const applied: string[] = [];
  const file = {
    flag: "--x",
    path,
    bytesMax: CONFIGURATION_BYTES_MAX,
    apply: (text: string) => void applied.push(text),
  };
  const deps = { clock: new FakeClock(), log: silentLogger };
  writeFileSync(path, Buffer.alloc(CONFIGURATION_BYTES_MAX + 1));
  await t.rejects(loadDynamicFile(file, deps), { message: /larger than 3145728 bytes/ });
  writeFileSync(path, "content");
  using _loaded = await loadDynamicFile(file, deps);
  t.same(applied, ["content"]);
});
