/**
 * Run by `make bench`: starts clusters with temporary states and measures them from outside.
 *   node src/bench/bench.ts [--json] [--program sources|bundle|binary] [--idle-seconds 30] [--pods 20]
 * Figures of one machine, which does other things too: processor time and ratios tell more than rates.
 */
import { cpus } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { loadKubeconfig } from "../client/kubeconfig.ts";
import { clusterLack, programs, TestCluster } from "../e2e/cluster.ts";
import { exampleImage } from "../e2e/example-image.ts";
import { Connection, type Credentials, closedLoop, quantile } from "./load.ts";
import { cpuMs, memory } from "./process.ts";

interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
}

const { values: options } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    program: { type: "string", default: "bundle" },
    "idle-seconds": { type: "string", default: "30" },
    pods: { type: "string", default: "20" },
  },
});
const rows: Row[] = [];

async function measure(program: readonly string[]): Promise<void> {
  await using cluster = await TestCluster.create({ program });
  try {
    await measureCluster(cluster);
  } catch (error) {
    throw new Error(`Cannot measure the cluster, which said at last:\n${cluster.log().slice(-LOG_SHOWN)}`, {
      cause: error,
    });
  }
}

/** Bytes of a cluster's log that explain why it could not be measured. */
const LOG_SHOWN = 4096;

async function measureCluster(cluster: TestCluster): Promise<void> {
  await measureStart(cluster);
  await sleep(5000);
  await measureIdle(cluster, Number(options["idle-seconds"]));
  const credentials = await admin(cluster);
  using connection = new Connection(credentials);
  await measureRequests(cluster, connection);
  await measurePods(connection, Number(options.pods));
  const pid = cluster.pid!;
  add("after the load: svc resident", memory(pid).rss, "MiB");
  const began = performance.now();
  await cluster.stop();
  add("stop, pods left running", performance.now() - began, "ms");
}

const WARM_STARTS = 3;

async function measureStart(cluster: TestCluster): Promise<void> {
  add("start to ready, first time (keys made, images imported)", await cluster.start(), "ms");
  add("  processor time of svc until then", cpuMs(cluster.pid!), "ms");
  const warm: number[] = [];
  const cpu: number[] = [];
  for (let i = 0; i < WARM_STARTS; i++) {
    await cluster.stop();
    warm.push(await cluster.start());
    cpu.push(cpuMs(cluster.pid!));
  }
  add("start to ready, warm", quantile(warm, 0.5), "ms");
  add("  processor time of svc until then", quantile(cpu, 0.5), "ms");
}

async function measureIdle(cluster: TestCluster, seconds: number): Promise<void> {
  const svc = cluster.pid!;
  const containerd = cluster.containerdPid();
  const before = [cpuMs(svc), cpuMs(containerd)] as const;
  await sleep(seconds * 1000);
  add(`idle over ${seconds} s: svc, of one core`, (cpuMs(svc) - before[0]) / (seconds * 10), "%");
  add(`idle over ${seconds} s: containerd, of one core`, (cpuMs(containerd) - before[1]) / (seconds * 10), "%");
  for (const [name, pid] of [
    ["svc", svc],
    ["containerd", containerd],
  ] as const) {
    const { rss, pss } = memory(pid);
    add(`idle: ${name} resident (RSS)`, rss, "MiB");
    add(`idle: ${name} proportional (PSS)`, pss, "MiB");
  }
}

const collection = "/api/v1/namespaces/default/configmaps";
const REQUESTS = 2000;
const WARM_UP = 500;

async function measureRequests(cluster: TestCluster, connection: Connection): Promise<void> {
  const data = { text: "x".repeat(1000) };
  const create = async (name: string): Promise<void> => {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
    expectStatus(await connection.request("POST", collection, body), 201);
  };
  const get = async (name: string): Promise<void> => {
    expectStatus(await connection.request("GET", `${collection}/${name}`), 200);
  };
  await closedLoop(WARM_UP, 8, (i) => create(`warm-${i}`));
  await closedLoop(WARM_UP, 8, (i) => get(`warm-${i}`));
  for (const concurrency of [1, 16, 64]) {
    await measureLoop(cluster, `CREATE of a 1 KB ConfigMap, ${concurrency} at a time`, concurrency, (i) =>
      create(`load-${concurrency}-${i}`),
    );
    await measureLoop(cluster, `GET of it, ${concurrency} at a time`, concurrency, (i) =>
      get(`load-${concurrency}-${i}`),
    );
  }
}

async function measureLoop(
  cluster: TestCluster,
  what: string,
  concurrency: number,
  job: (index: number) => Promise<void>,
): Promise<void> {
  const before = cpuMs(cluster.pid!);
  const { perSecond, p50Ms, p99Ms } = await closedLoop(REQUESTS, concurrency, job);
  add(what, perSecond, "/s");
  add("  processor time of svc", ((cpuMs(cluster.pid!) - before) * 1000) / REQUESTS, "µs each");
  add("  median", p50Ms, "ms");
  add("  99th percentile", p99Ms, "ms");
}

const pods = "/api/v1/namespaces/default/pods";

/** One pod after the other, each from the send of its create until a watch shows it running. */
async function measurePods(connection: Connection, count: number): Promise<void> {
  const list = JSON.parse((await connection.request("GET", `${pods}?limit=1`)).body);
  const running = new Map<string, () => void>();
  let rest = "";
  const watch = `${pods}?watch=true&resourceVersion=${list.metadata.resourceVersion}`;
  void connection
    .request("GET", watch, undefined, (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { object } = JSON.parse(line);
        if (object.status?.phase === "Running") running.get(object.metadata.name)?.();
      }
    })
    .catch(() => undefined);
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const name = `bench-${i}`;
    const { promise, resolve } = Promise.withResolvers<void>();
    running.set(name, resolve);
    const began = performance.now();
    expectStatus(await connection.request("POST", pods, pod(name)), 201);
    await promise;
    times.push(performance.now() - began);
  }
  add(`pod created to Running, median of ${count}`, quantile(times, 0.5), "ms");
  add("  99th percentile", quantile(times, 0.99), "ms");
}

function pod(name: string): unknown {
  const container = { name: "c", image: exampleImage, imagePullPolicy: "Never", command: ["sleep", "3600"] };
  const spec = { terminationGracePeriodSeconds: 0, containers: [container] };
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
}

function expectStatus({ status, body }: { readonly status: number; readonly body: string }, expected: number): void {
  if (status !== expected) throw new Error(`Expected ${expected}, got ${status}: ${body.slice(0, 500)}`);
}

async function admin(cluster: TestCluster): Promise<Credentials> {
  const { server, ca, cert, key } = await loadKubeconfig(cluster.kubeconfig);
  return { server, ca: String(ca), cert: String(cert), key: String(key) };
}

function add(what: string, value: number, unit: string): void {
  rows.push({ what, value: Number(value.toPrecision(3)), unit });
}

function print(): void {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}, ${options.program}`;
  if (options.json) {
    console.log(JSON.stringify({ machine, rows }, undefined, 2));
    return;
  }
  console.log(machine);
  const width = Math.max(...rows.map(({ what }) => what.length));
  for (const { what, value, unit } of rows) console.log(`${what.padEnd(width)}  ${String(value).padStart(8)} ${unit}`);
}

const lack = clusterLack();
if (lack !== undefined) {
  console.error(`Nothing is measured: ${lack}.`);
  process.exitCode = 1;
} else if (!Object.hasOwn(programs, options.program)) {
  console.error(`Unknown --program ${JSON.stringify(options.program)}; allowed: ${Object.keys(programs).join(", ")}`);
  process.exitCode = 2;
} else {
  await measure(programs[options.program as keyof typeof programs]);
  print();
}
