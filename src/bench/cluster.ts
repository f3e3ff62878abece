/** `svc up` from outside: start, idle cost, start latency of pods. */
import { setTimeout as sleep } from "node:timers/promises";
import { TestCluster } from "../acceptance/cluster/cluster.ts";
import { exampleImage } from "../acceptance/cluster/example-image.ts";
import { loadKubeconfig } from "../client/kubeconfig/kubeconfig.ts";
import type { Figures } from "./figures.ts";
import { Connection, type Credentials, expectStatus, quantile } from "./load.ts";
import { cpuMs, memory } from "./process.ts";

export interface ClusterBenchOptions {
  readonly idleSeconds: number;
  readonly pods: number;
}

/** Bytes of the end of the log in the error of a failed measurement. */
const LOG_BYTES_MAX = 4096;

export async function measureCluster(
  figures: Figures,
  program: readonly string[],
  options: ClusterBenchOptions,
): Promise<void> {
  await using cluster = await TestCluster.create({ program });
  try {
    await measure(figures, cluster, options);
  } catch (error) {
    throw new Error(`Failed to measure the cluster; the end of its log:\n${cluster.log().slice(-LOG_BYTES_MAX)}`, {
      cause: error,
    });
  }
}

async function measure(figures: Figures, cluster: TestCluster, options: ClusterBenchOptions): Promise<void> {
  await measureStart(figures, cluster);
  await sleep(5000);
  await measureIdle(figures, cluster, options.idleSeconds);
  const credentials = await admin(cluster);
  await measureDeploymentsAtRest(figures, cluster, credentials, options.idleSeconds);
  await measurePods(figures, credentials, options.pods);
  figures.add("after the pods: svc resident", memory(cluster.pid!).rss, "MiB");
  const began = performance.now();
  await cluster.stop();
  figures.add("stop, pods left running", performance.now() - began, "ms");
}

const WARM_STARTS = 3;

async function measureStart(figures: Figures, cluster: TestCluster): Promise<void> {
  figures.add("start to ready, first time (keys made, images imported)", await cluster.start(), "ms");
  figures.add("  CPU time of svc until then", cpuMs(cluster.pid!), "ms");
  const warm: number[] = [];
  const cpu: number[] = [];
  for (let i = 0; i < WARM_STARTS; i++) {
    await cluster.stop();
    warm.push(await cluster.start());
    cpu.push(cpuMs(cluster.pid!));
  }
  figures.add("start to ready, warm", quantile(warm, 0.5), "ms");
  figures.add("  CPU time of svc until then", quantile(cpu, 0.5), "ms");
}

async function measureIdle(figures: Figures, cluster: TestCluster, seconds: number): Promise<void> {
  const svc = cluster.pid!;
  const containerd = cluster.containerdPid();
  const before = [cpuMs(svc), cpuMs(containerd)] as const;
  await sleep(seconds * 1000);
  figures.add(`idle over ${seconds} s: svc, of one core`, (cpuMs(svc) - before[0]) / (seconds * 10), "%");
  figures.add(`idle over ${seconds} s: containerd, of one core`, (cpuMs(containerd) - before[1]) / (seconds * 10), "%");
  for (const [name, pid] of [
    ["svc", svc],
    ["containerd", containerd],
  ] as const) {
    const { rss, pss } = memory(pid);
    figures.add(`idle: ${name} resident (RSS)`, rss, "MiB");
    figures.add(`idle: ${name} proportional (PSS)`, pss, "MiB");
  }
}

const DEPLOYMENTS = 30;
/** Until V8 has compiled what runs at rest, and the retries and delays after the start of pods have ended. */
const REST_MS = 60_000;
const deployments = "/apis/apps/v1/namespaces/default/deployments";

/** What a node costs whose applications do nothing. */
async function measureDeploymentsAtRest(
  figures: Figures,
  cluster: TestCluster,
  credentials: Credentials,
  seconds: number,
): Promise<void> {
  // The server closes it while it is idle.
  using connection = new Connection(credentials);
  for (let index = 0; index < DEPLOYMENTS; index++) {
    const labels = { app: `rest-${index}` };
    const template = { metadata: { labels }, spec: podSpec() };
    const spec = { replicas: 1, selector: { matchLabels: labels }, template };
    expectStatus(await connection.request("POST", deployments, { metadata: { name: `rest-${index}` }, spec }), 201);
  }
  const wait = ["wait", "--for=condition=Available", "deployment", "--all", "--timeout=120s"];
  const { code, stderr } = await cluster.kubectl(wait, { timeoutMs: 180_000 });
  if (code !== 0) throw new Error(`Not all deployments are available: ${stderr}`);
  await sleep(REST_MS);
  const pids = [cluster.pid!, cluster.containerdPid()];
  const before = pids.map(cpuMs);
  await sleep(seconds * 1000);
  const [svc = 0, containerd = 0] = pids.map((pid, index) => (cpuMs(pid) - before[index]!) / (seconds * 10));
  figures.addAll(`${DEPLOYMENTS} deployments at rest over ${seconds} s, of one core`, {
    "% svc": svc,
    "% containerd": containerd,
    "MiB resident of svc": memory(pids[0]!).rss,
  });
  await cluster.kubectl(["delete", "deployment", "--all", "--cascade=foreground", "--timeout=120s"]);
}

const pods = "/api/v1/namespaces/default/pods";

/** One pod at a time, from the create request until a watch reports phase Running. */
async function measurePods(figures: Figures, credentials: Credentials, count: number): Promise<void> {
  using connection = new Connection(credentials);
  const list = JSON.parse((await connection.request("GET", `${pods}?limit=1`)).body);
  const running = new Map<string, () => void>();
  let rest = "";
  const watch = `${pods}?watch=true&resourceVersion=${list.metadata.resourceVersion}`;
  void connection
    .request("GET", watch, undefined, {
      onData: (chunk) => {
        const lines = (rest + chunk.toString("latin1")).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          const { object } = JSON.parse(line);
          if (object.status?.phase === "Running") running.get(object.metadata.name)?.();
        }
      },
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
  figures.add(`pod created to Running, median of ${count}`, quantile(times, 0.5), "ms");
  figures.add("  99th percentile", quantile(times, 0.99), "ms");
}

function pod(name: string): unknown {
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec: podSpec() };
}

function podSpec(): unknown {
  const container = { name: "c", image: exampleImage, imagePullPolicy: "Never", command: ["sleep", "3600"] };
  return { terminationGracePeriodSeconds: 0, containers: [container] };
}

async function admin(cluster: TestCluster): Promise<Credentials> {
  const { server, ca, cert, key } = await loadKubeconfig(cluster.kubeconfig);
  return { server, ca: String(ca), cert: String(cert), key: String(key) };
}
