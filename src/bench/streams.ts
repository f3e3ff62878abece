/** Streams into containers: a command's round trip, a forwarded port beside a direct one, memory of open streams. */
import { Agent } from "node:https";
import { join } from "node:path";
import { findMissingRequirement, TestCluster } from "../acceptance/cluster/cluster.ts";
import { exampleImage } from "../acceptance/cluster/example-image.ts";
import { type CriClient, createCriClient } from "../agent/runtime/cri-client.ts";
import { loadKubeconfig } from "../client/kubeconfig/kubeconfig.ts";
import type { SpdyConnection, SpdyStream } from "../http/spdy/connection.ts";
import { systemClock } from "../std/time/clock.ts";
import { until } from "../testing/std/until.ts";
import type { Figures } from "./figures.ts";
import { quantile } from "./load.ts";
import { ECHO_PORT, ignored, measureMemory, openSpdy, type Processes, type Target } from "./open-streams.ts";
import { PODS } from "./pod-starts.ts";
import { cpuMs } from "./process.ts";

const POD = `${PODS}/streams`;
/** Of the pods that are measured. */
export const PORT = 9100;
export const BYTES = 200 * 2 ** 20;
const ROUNDS = 30;
const DOWNLOADS = 7;

export async function measureStreams(figures: Figures, program: readonly string[]): Promise<void> {
  const missing = findMissingRequirement();
  if (missing !== undefined) {
    console.error(`Skipping section streams: ${missing}.`);
    return;
  }
  await using cluster = await TestCluster.create({ program });
  await cluster.start("--stop-pods");
  await startPod(cluster);
  const throughApi = await apiRequest(cluster);
  await measureExec(figures, throughApi);
  using cri = createCriClient({
    endpoint: `unix://${join(cluster.runDir, "containerd.sock")}`,
    requestTimeoutMs: 60_000,
    clock: systemClock,
  });
  const pids = { svc: cluster.pid ?? 0 };
  await measureMemory(figures, pids, throughApi, "exec, SPDY");
  await measureDownloads(figures, pids, { direct: () => findRuntimeTarget(cri), through: throughApi });
}

/** The runtime's own server of a forwarded port: each URL serves one connection. */
export async function findRuntimeTarget({ runtime }: CriClient): Promise<Target> {
  const filter = { labelSelector: { "io.kubernetes.pod.name": "streams" } };
  const { items = [] } = await runtime.listPodSandbox({ filter });
  const { url = "" } = await runtime.portForward({ podSandboxId: items[0]?.id ?? "", port: [] });
  const { hostname, port, pathname } = new URL(url);
  return { secure: false, host: hostname, port: Number(port), path: pathname };
}

/** Both ways by turns: the load of the machine varies. */
export async function measureDownloads(
  figures: Figures,
  pids: Processes,
  { direct, through }: { readonly direct: () => Promise<Target>; readonly through: Target },
): Promise<void> {
  const rates: Record<"direct" | "through", number[]> = { direct: [], through: [] };
  const before = Object.values(pids).map(cpuMs);
  for (let round = 0; round < DOWNLOADS; round++) {
    rates.direct.push(await download(await direct()));
    rates.through.push(await download({ ...through, path: `${through.path}/portforward` }));
  }
  const median = (seconds: readonly number[]): number => BYTES / 1e6 / quantile(seconds, 0.5);
  figures.addAll(`port-forward, medians of ${DOWNLOADS}: to the runtime; through API server and agent`, {
    "MB/s directly": median(rates.direct),
    "MB/s": median(rates.through),
    "% of it": (median(rates.through) / median(rates.direct)) * 100,
  });
  for (const [index, [process, pid]] of Object.entries(pids).entries()) {
    figures.add(`the same, CPU time of ${process}`, (cpuMs(pid) - (before[index] ?? 0)) / DOWNLOADS, "ms");
  }
}

/** A pod that sends zeros to each connection of `PORT`. */
export function streamsPod(image: string, imagePullPolicy: string): object {
  const echo = `busybox nc -ll -p ${ECHO_PORT} -e cat`;
  const command = ["sh", "-c", `${echo} & exec busybox nc -ll -p ${PORT} -e cat /dev/zero`];
  const containers = [{ name: "c", image, imagePullPolicy, command }];
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "streams" }, spec: { containers } };
}

async function startPod(cluster: TestCluster): Promise<void> {
  const pod = streamsPod(exampleImage, "IfNotPresent");
  await cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify(pod) });
  await until("the pod to run", async () => {
    const { stdout } = await cluster.kubectl(["get", "pod", "streams", "-o", "jsonpath={.status.phase}"]);
    return stdout === "Running";
  });
}

export async function apiRequest(cluster: TestCluster): Promise<Target> {
  const { server, ca, cert, key } = await loadKubeconfig(cluster.kubeconfig);
  const { hostname, port } = new URL(server);
  const agent = new Agent({ ca, cert, key });
  return { secure: true, host: hostname, port: Number(port), path: POD, agent };
}

async function measureExec(figures: Figures, target: Target): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    const connection = await openSpdy({ ...target, path: `${POD}/exec?command=true&stdout=true` }, "v4.channel.k8s.io");
    await new Promise<void>((resolve) => {
      connection.open({ streamtype: "error" }, { data: () => {}, end: () => resolve() });
      connection.open({ streamtype: "stdout" }, ignored);
    });
    connection.close();
    times.push(performance.now() - began);
  }
  figures.addAll("exec of true, through API server and agent", {
    "ms p50": quantile(times, 0.5),
    "ms p99": quantile(times, 0.99),
  });
}

function openPort(connection: SpdyConnection, data: (chunk: Buffer) => void): SpdyStream {
  const headers = { port: String(PORT), requestid: "0" };
  connection.open({ ...headers, streamtype: "error" }, ignored);
  return connection.open({ ...headers, streamtype: "data" }, { data, end: () => {} });
}

/** Resolves with the seconds for `BYTES` bytes. */
export async function download(target: Target): Promise<number> {
  const connection = await openSpdy(target, "portforward.k8s.io");
  const began = performance.now();
  await new Promise<void>((resolve) => {
    let received = 0;
    openPort(connection, (chunk) => {
      received += chunk.length;
      if (received >= BYTES) resolve();
    });
  });
  connection.close();
  return (performance.now() - began) / 1000;
}
