/** Streams of many gigabytes, and clients that do not read: what is buffered is bounded. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";
import { endsOf } from "./kubectl-sessions.ts";

const GIB = 2 ** 30;
/** `SVC_PIPE_GIB=10` for the figure of docs/performance.md. */
const PIPE_BYTES = Number(process.env.SVC_PIPE_GIB ?? 1) * GIB;
/** busybox counts in 32 bits. */
const COUNTED_MAX = 2 ** 32;
const MEMORY_MIB_MAX = 64;
const STALL_MS = 3000;
const RUN_MS_MAX = 600_000;

t.setTimeout(RUN_MS_MAX);
const missing = findMissingRequirement();
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("streams need little memory, however long and slow they are", { timeout: RUN_MS_MAX }, async (t) => {
    const { SVC_PROGRAM: selected = "bundle" } = process.env;
    await using cluster = await TestCluster.create({ program: programs[selected as keyof typeof programs] });
    await cluster.start("--stop-pods");
    await createPod(cluster);
    for (const { path } of await endsOf(kubectlPaths())) {
      await testPipe(t, cluster, path);
      await testStalled(t, cluster, path);
    }
  });
}

async function createPod(cluster: TestCluster): Promise<void> {
  const container = { name: "c", image: exampleImage, command: ["sleep", "3600"] };
  const spec = { terminationGracePeriodSeconds: 0, containers: [container] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec };
  await cluster.kubectl(["create", "-f", "-"], { input: JSON.stringify(pod) });
  await cluster.kubectl(["wait", "--for=condition=Ready", "pod/p", "--timeout=60s"]);
}

function residentMib(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

/** The peak while the work runs, above what was there before. */
async function measureGrowth<T>({ pid = 0 }: TestCluster, work: () => Promise<T>): Promise<readonly [T, number]> {
  const before = residentMib(pid);
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, residentMib(pid));
  }, 50);
  try {
    return [await work(), peak - before];
  } finally {
    clearInterval(timer);
  }
}

async function testPipe(t: Test, cluster: TestCluster, binary: string): Promise<void> {
  const began = performance.now();
  const [count, growth] = await measureGrowth(cluster, async () => {
    const child = spawn(binary, ["exec", "-i", "p", "--", "busybox", "wc", "-c"], { env: cluster.env, stdio: "pipe" });
    child.stdin.on("error", () => {});
    writeZeros(child.stdin).catch(() => {});
    const chunks: Buffer[] = [];
    for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
    return Number(Buffer.concat(chunks).toString());
  });
  t.equal(count, PIPE_BYTES % COUNTED_MAX, `${PIPE_BYTES / GIB} GiB arrive`);
  t.comment(`${Math.round(PIPE_BYTES / 1e3 / (performance.now() - began))} MB/s, ${Math.round(growth)} MiB more`);
  t.ok(growth < MEMORY_MIB_MAX, `${Math.round(growth)} MiB more memory`);
}

async function writeZeros(sink: NodeJS.WritableStream): Promise<void> {
  const chunk = Buffer.alloc(64 * 1024);
  for (let left = PIPE_BYTES; left > 0; left -= chunk.length) {
    if (!sink.write(chunk)) await once(sink, "drain");
  }
  sink.end();
}

async function testStalled(t: Test, cluster: TestCluster, binary: string): Promise<void> {
  const child = spawn(binary, ["exec", "p", "--", "cat", "/dev/zero"], { env: cluster.env, stdio: "pipe" });
  let received = 0;
  child.stdout.on("data", (chunk: Buffer) => {
    received += chunk.length;
  });
  await until("the first bytes", () => received > 2 ** 20);
  const [, growth] = await measureGrowth(cluster, async () => {
    child.stdout.pause();
    await sleep(STALL_MS);
  });
  t.ok(growth < MEMORY_MIB_MAX, `${Math.round(growth)} MiB more while the client does not read`);
  const before = received;
  child.stdout.resume();
  await until("more bytes", () => received > before + 16 * 2 ** 20);
  child.kill();
  await once(child, "close");
  t.pass("the stream goes on when it reads again");
}
