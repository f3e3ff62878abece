/** Streams into containers: a command's round trip, a forwarded port beside a direct one, memory of open streams. */
import { Agent } from "node:https";
import { join } from "node:path";
import { findMissingRequirement, TestCluster } from "../acceptance/cluster/cluster.ts";
import { exampleImage } from "../acceptance/cluster/example-image.ts";
import { createCriClient } from "../agent/runtime/cri-client.ts";
import { loadKubeconfig } from "../client/kubeconfig/kubeconfig.ts";
import { SpdyConnection, type SpdyStream } from "../http/spdy/connection.ts";
import { connectUpgrade, type UpgradeRequest } from "../http/upgrade/connect-upgrade.ts";
import { systemClock } from "../std/time/clock.ts";
import { until } from "../testing/std/until.ts";
import type { Figures } from "./figures.ts";
import { quantile } from "./load.ts";
import { cpuMs, memory } from "./process.ts";

const POD = "/api/v1/namespaces/default/pods/streams";
/** Of the pods that are measured. */
export const PORT = 9100;
export const BYTES = 200 * 2 ** 20;
const ROUNDS = 30;
const OPEN_STREAMS = 200;
const MIB = 2 ** 20;

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
  const { items = [] } = await cri.runtime.listPodSandbox({
    filter: { labelSelector: { "io.kubernetes.pod.name": "streams" } },
  });
  const direct = async (): Promise<Target> => {
    const { url = "" } = await cri.runtime.portForward({ podSandboxId: items[0]?.id ?? "", port: [] });
    const { hostname, port, pathname } = new URL(url);
    return { secure: false, host: hostname, port: Number(port), path: pathname };
  };
  const forwarded = async (): Promise<Target> => ({ ...throughApi, path: `${POD}/portforward` });
  const pid = cluster.pid ?? 0;
  for (const [what, target] of [
    ["direct to the runtime", direct],
    ["through API server and agent", forwarded],
  ] as const) {
    const before = cpuMs(pid);
    const seconds = await download(await target());
    figures.addAll(`port-forward, ${what}`, { "MB/s": BYTES / 1e6 / seconds, "ms CPU of svc": cpuMs(pid) - before });
  }
  await measureMemory(figures, pid, throughApi);
}

export type Target = Pick<UpgradeRequest, "secure" | "host" | "port" | "path" | "agent">;

async function startPod(cluster: TestCluster): Promise<void> {
  const command = ["sh", "-c", `exec nc -ll -p ${PORT} -e cat /dev/zero`];
  const containers = [{ name: "c", image: exampleImage, imagePullPolicy: "IfNotPresent", command }];
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "streams" }, spec: { containers } };
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

/** Opens a SPDY connection. */
async function open(target: Target, protocol: string): Promise<SpdyConnection> {
  const result = await connectUpgrade({
    ...target,
    method: "POST",
    headers: { upgrade: "SPDY/3.1", "x-stream-protocol-version": protocol },
    signal: new AbortController().signal,
  });
  if (!("socket" in result)) throw new Error(`Cannot open a stream: status ${result.status}`);
  const connection = new SpdyConnection({ input: result.socket, output: result.socket, role: "client" });
  connection.run().catch(() => {});
  return connection;
}

const ignored = { data: () => {}, end: () => {} };

async function measureExec(figures: Figures, target: Target): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    const connection = await open({ ...target, path: `${POD}/exec?command=true&stdout=true` }, "v4.channel.k8s.io");
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
  const connection = await open(target, "portforward.k8s.io");
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

/** Resident memory for each idle terminal, in the one process of API server and agent. */
async function measureMemory(figures: Figures, pid: number, target: Target): Promise<void> {
  const before = memory(pid).rss;
  const path = `${POD}/exec?command=cat&stdin=true&stdout=true`;
  const connections: SpdyConnection[] = [];
  for (let count = 0; count < OPEN_STREAMS; count++) {
    const connection = await open({ ...target, path }, "v4.channel.k8s.io");
    for (const streamtype of ["error", "stdin", "stdout"]) connection.open({ streamtype }, ignored);
    connections.push(connection);
  }
  await new Promise((resolve) => setTimeout(resolve, 2000));
  figures.add(
    `memory of an open stream, of ${OPEN_STREAMS}`,
    ((memory(pid).rss - before) * MIB) / 1024 / OPEN_STREAMS,
    "KiB",
  );
  for (const connection of connections) connection.close();
}
