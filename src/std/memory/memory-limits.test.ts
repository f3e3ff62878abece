import { spawnSync } from "node:child_process";
import { totalmem } from "node:os";
import t from "tap";
import { memoryLimits } from "./memory-limits.ts";

const GIB = 2 ** 30;

t.test("memoryLimits() is the machine's memory or the limit of the control group", async (t) => {
  t.same(memoryLimits(8 * GIB, 0, GIB), { bytes: 8 * GIB, heapBytes: GIB });
  t.same(memoryLimits(8 * GIB, 2 * GIB, GIB), { bytes: 2 * GIB, heapBytes: GIB });
  // The limit of a version 1 control group without one.
  t.same(memoryLimits(8 * GIB, 2 ** 63, GIB), { bytes: 8 * GIB, heapBytes: GIB });
  const { bytes, heapBytes } = memoryLimits();
  t.ok(bytes > 0 && bytes <= totalmem() && heapBytes > 0, `${bytes} ${heapBytes}`);
});

t.test("memoryLimits() has the heap limit of the process", async (t) => {
  const module = JSON.stringify(new URL("memory-limits.ts", import.meta.url).href);
  const script = `import(${module}).then(({ memoryLimits }) => console.log(memoryLimits().heapBytes))`;
  const { stdout } = spawnSync(process.execPath, ["--max-old-space-size=100", "-e", script], { encoding: "utf8" });
  t.ok(Number(stdout) >= 100 * 2 ** 20 && Number(stdout) < 200 * 2 ** 20, stdout);
});
