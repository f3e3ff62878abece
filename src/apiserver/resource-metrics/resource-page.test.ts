import { Readable } from "node:stream";
import t from "tap";
import { PAGE_BYTES_MAX, readResourcePage } from "./resource-page.ts";

const NOW = 1_800_000_000_000;

async function* inChunks(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

const page = `# HELP container_cpu_usage_seconds_total CPU time in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="c",namespace="default",pod="a"} 1.5 1700000001000
container_cpu_usage_seconds_total{container="d",namespace="default",pod="a"} 2 1700000002000
container_cpu_usage_seconds_total{container="c",namespace="default",pod="new"} 0 1700000001000
container_memory_working_set_bytes{container="c",namespace="default",pod="a"} 1.048576e+06 1700000001000
container_memory_working_set_bytes{container="d",namespace="default",pod="a"} 4096 1700000002000
container_memory_working_set_bytes{container="c",namespace="default",pod="new"} 4096 1700000002000
container_start_time_seconds{container="c",namespace="default",pod="a"} 1.6999e+09
node_cpu_usage_seconds_total 100.25 1700000003000
node_memory_working_set_bytes 2048 1700000003000
pod_cpu_usage_seconds_total{namespace="default",pod="a"} 4 1700000001000
resource_scrape_error 0`;

t.test("readResourcePage() reads nodes and containers, whatever the chunks", async (t) => {
  for (const size of [1, 7, 100, 10_000]) {
    const { node, pods } = await readResourcePage(inChunks(page, size), NOW);
    t.same(node, { timeMs: 1_700_000_003_000, cpuSeconds: 100.25, memoryBytes: 2048, startMs: 0 });
    t.same([...pods.keys()], ["default/a"], "a pod whose container has no CPU time yet is absent");
    const c = { timeMs: 1_700_000_001_000, cpuSeconds: 1.5, memoryBytes: 1_048_576, startMs: 1_699_900_000_000 };
    const d = { timeMs: 1_700_000_002_000, cpuSeconds: 2, memoryBytes: 4096, startMs: 0 };
    t.same(Object.fromEntries(pods.get("default/a") ?? []), { c, d });
  }
});

t.test("readResourcePage() gives samples without a time that of the response", async (t) => {
  const text = "node_cpu_usage_seconds_total 1\nnode_memory_working_set_bytes 2\n";
  t.equal((await readResourcePage(inChunks(text, 1000), NOW)).node?.timeMs, NOW);
});

t.test("readResourcePage() skips malformed samples", async (t) => {
  const malformed = [
    "node_cpu_usage_seconds_total NaN",
    "node_cpu_usage_seconds_total -5",
    "node_cpu_usage_seconds_total +Inf",
    "node_cpu_usage_seconds_total 5 99999999999999999999",
    "node_cpu_usage_seconds_total",
    `container_cpu_usage_seconds_total{container="c",namespace="default"} 1`,
    `container_cpu_usage_seconds_total{container="${"c".repeat(300)}",namespace="default",pod="a"} 1`,
    `container_cpu_usage_seconds_total{container="c 1`,
    `node_cpu_usage_seconds_total${"{".repeat(2000)}`,
    "constructor{} 1",
    "node___proto__ 1",
  ];
  const { node, pods } = await readResourcePage(inChunks([...malformed, page].join("\n"), 64), NOW);
  t.equal(node?.cpuSeconds, 100.25);
  t.equal(pods.size, 1);
});

t.test("readResourcePage() rejects garbage and pages beyond its bounds", async (t) => {
  await t.rejects(readResourcePage(inChunks("", 1), NOW), /the response has no resource metrics/);
  await t.rejects(
    readResourcePage(inChunks("<html>\0\xff".repeat(99), 9), NOW),
    /the response has no resource metrics/,
  );
  await t.rejects(readResourcePage(inChunks("n".repeat(100_000), 4096), NOW), /a line of more than 8192 bytes/);
  const many = Array.from(
    { length: 20_001 },
    (_, index) => `container_cpu_usage_seconds_total{container="c",namespace="x",pod="p${index}"} 1\n`,
  );
  await t.rejects(readResourcePage(inChunks(many.join(""), 65_536), NOW), /more than 20000 containers/);
  const lines = inChunks("\n".repeat(200_001), 65_536);
  await t.rejects(readResourcePage(lines, NOW), /more than 200000 lines/);
  let sent = 0;
  const endless = Readable.from(
    (function* () {
      for (;;) {
        sent += 65_536;
        yield Buffer.alloc(65_536, `# ${"comment ".repeat(100)}\n`);
      }
    })(),
  );
  await t.rejects(readResourcePage(endless, NOW), /more than 16777216 bytes/);
  t.ok(endless.destroyed, "the response is closed");
  t.ok(sent < 2 * PAGE_BYTES_MAX);
});
