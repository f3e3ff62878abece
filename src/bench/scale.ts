/**
 * Run by `make scale`: adds hollow nodes with their pods step by step, and prints after each step what the API server
 * costs and how long writes take, until the 99th percentile of writes exceeds a second.
 *   node src/bench/scale.ts [--nodes 5000] [--step 500] [--pods-per-node 10] [--seconds 30] [--pods-per-second 10]
 *     [--store embedded|etcd] [--program sources|bundle|binary] [--json] [-- FLAG-OF-THE-SERVER…]
 * Server and nodes share the machine: each node has a connection of its own; the CPU time of all of them is printed.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { programs } from "../acceptance/cluster/cluster.ts";
import { findEtcdProblem, startEtcd } from "../testing/storage/etcd-server.ts";
import { Figures } from "./figures.ts";
import { HollowNode, type WriteObserver } from "./hollow-node.ts";
import { closedLoop, quantile } from "./load.ts";
import { cpuMs, memory } from "./process.ts";
import { BenchServer } from "./server.ts";

const NODES_STARTED_AT_ONCE = 16;
/** The aim of Kubernetes' scalability tests for mutating requests. */
const P99_MS_MAX = 1000;
/** Different errors that are printed. */
const ERRORS_MAX = 20;

const { values: options, positionals: serverFlags } = parseArgs({
  allowPositionals: true,
  options: {
    nodes: { type: "string", default: "5000" },
    step: { type: "string", default: "500" },
    "pods-per-node": { type: "string", default: "10" },
    "pods-per-second": { type: "string", default: "10" },
    seconds: { type: "string", default: "30" },
    store: { type: "string", default: "embedded" },
    program: { type: "string", default: "bundle" },
    json: { type: "boolean", default: false },
  },
});

class Writes implements WriteObserver {
  #times: number[] = [];
  failed = 0;
  /** How often each error occurred, without the names of objects. */
  readonly errors = new Map<string, number>();

  observe(milliseconds: number): void {
    this.#times.push(milliseconds);
  }

  fail(error: unknown): void {
    this.failed++;
    const text = String(error).replaceAll(/[a-z]+-\d+(-\d+)?/g, "NAME");
    if (this.errors.size < ERRORS_MAX || this.errors.has(text)) this.errors.set(text, (this.errors.get(text) ?? 0) + 1);
  }

  /** The times since the last call. */
  take(): number[] {
    const taken = this.#times;
    this.#times = [];
    return taken;
  }
}

/** Bytes that a process has sent to disks. */
function writtenBytes(pid: number): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
}

/** Replaces pods one by one at a rate, until `signal` aborts. */
async function replacePods(
  nodes: readonly HollowNode[],
  perSecond: number,
  writes: WriteObserver,
  signal: AbortSignal,
): Promise<void> {
  for (let index = 0; !signal.aborted; index++) {
    await sleep(1000 / perSecond);
    const node = nodes[Math.floor(Math.random() * nodes.length)];
    if (node === undefined) continue;
    const name = `churn-${index}`;
    void node
      .runPod(name)
      .then(() => sleep(5000))
      .then(() => node.deletePod(name))
      .catch((error: unknown) => writes.fail(error));
  }
}

async function measure(figures: Figures, program: readonly string[]): Promise<void> {
  const [target, step, podsPerNode, seconds] = [
    options.nodes,
    options.step,
    options["pods-per-node"],
    options.seconds,
  ].map(Number) as [number, number, number, number];
  await using etcd = options.store === "etcd" ? await startEtcd(1, undefined, [], true) : undefined;
  await using server = await BenchServer.create(program, etcd?.urls.join());
  await server.start(...serverFlags);
  const writers = [server.pid, ...(etcd?.servers ?? []).map(({ pid }) => pid)];
  const writes = new Writes();
  const nodes: HollowNode[] = [];
  const abort = new AbortController();
  const replacing = replacePods(nodes, Number(options["pods-per-second"]), writes, abort.signal);
  try {
    while (nodes.length < target) {
      const added = Math.min(step, target - nodes.length);
      const first = nodes.length;
      await closedLoop(added, NODES_STARTED_AT_ONCE, async (index) => {
        const node = new HollowNode(`node-${first + index}`, server.credentials, writes);
        await node.start();
        for (let pod = 0; pod < podsPerNode; pod++) await node.runPod(`${node.name}-${pod}`);
        nodes.push(node);
      });
      writes.take();
      writes.failed = 0;
      const before = { cpu: writers.map(cpuMs), own: process.cpuUsage(), written: writers.map(writtenBytes) };
      await sleep(seconds * 1000);
      const times = writes.take();
      const percent = (milliseconds: number): number => milliseconds / seconds / 10;
      const own = process.cpuUsage(before.own);
      const [svc = 0, store = 0] = writers.map((pid, index) => percent(cpuMs(pid) - before.cpu[index]!));
      const written = writers.reduce((sum, pid, index) => sum + writtenBytes(pid) - before.written[index]!, 0);
      const p99 = quantile(times, 0.99);
      figures.addAll(`${nodes.length} nodes, ${nodes.length * podsPerNode} pods, ${options.store}`, {
        "writes/s": times.length / seconds,
        "ms p50": quantile(times, 0.5),
        "ms p99": p99,
        "% CPU svc": svc,
        ...(etcd === undefined ? {} : { "% CPU etcd": store }),
        "% CPU nodes": percent((own.user + own.system) / 1000),
        "MiB resident": memory(server.pid).rss,
        "KiB/s written": written / seconds / 1024,
        "failed writes": writes.failed,
      });
      if (p99 > P99_MS_MAX) return console.error(`The 99th percentile of writes exceeds ${P99_MS_MAX} ms`);
    }
  } finally {
    abort.abort();
    await replacing;
    for (const node of nodes) node[Symbol.dispose]();
    for (const [text, count] of writes.errors) console.error(`${count} writes failed: ${text}`);
  }
}

const program = Object.entries(programs).find(([name]) => name === options.program)?.[1];
const problem = options.store === "etcd" ? findEtcdProblem() : undefined;
if (program === undefined || !["embedded", "etcd"].includes(options.store)) {
  console.error(`Usage: --program is one of ${Object.keys(programs).join(", ")}; --store is embedded or etcd`);
  process.exitCode = 2;
} else if (problem !== undefined) {
  console.error(problem);
  process.exitCode = 1;
} else {
  const figures = new Figures(options.program, options.json);
  await measure(figures, program);
  figures.finish();
}
