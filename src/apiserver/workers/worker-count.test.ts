import t from "tap";
import { defaultWorkers, readMachine } from "./worker-count.ts";

const GIB = 2 ** 30;

t.test("a server has a thread for each core, up to four, and half a GiB of memory for each", async (t) => {
  t.equal(defaultWorkers({ cores: 1, memoryBytes: 64 * GIB }), 1);
  t.equal(defaultWorkers({ cores: 2, memoryBytes: 2 * GIB }), 2);
  t.equal(defaultWorkers({ cores: 4, memoryBytes: 1 * GIB }), 2);
  t.equal(defaultWorkers({ cores: 2, memoryBytes: GIB / 4 }), 1);
  t.equal(defaultWorkers({ cores: 64, memoryBytes: 256 * GIB }), 4);
});

t.test("this machine has cores and memory", async (t) => {
  const { cores, memoryBytes } = readMachine();
  t.ok(cores >= 1);
  t.ok(memoryBytes > 64 * 2 ** 20);
});
