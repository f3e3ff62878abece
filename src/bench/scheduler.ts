/** Pods a second: from their creation to their binding, over 1,000 nodes without agents. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Figures } from "./figures.ts";
import { Connection, type Credentials, closedLoop, expectStatus } from "./load.ts";
import { cpuMs } from "./process.ts";
import { BenchServer } from "./server.ts";

const NODES = 1000;
const PODS = 5000;
const APPS = 50;
const CONCURRENCY = 32;
const BOUND_MS_MAX = 120_000;

export async function measureScheduler(figures: Figures, program: readonly string[]): Promise<void> {
  await measureProgram(figures, program);
  await measureEmbedded(figures, program);
}

async function measureProgram(figures: Figures, program: readonly string[]): Promise<void> {
  await using server = await BenchServer.create(program);
  await server.start();
  const home = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const scheduler = startScheduler(program, home, server.credentials);
  try {
    await measurePods(figures, server, "svc scheduler", scheduler.pid);
  } finally {
    scheduler.kill();
    rmSync(home, { recursive: true, force: true });
  }
}

async function measureEmbedded(figures: Figures, program: readonly string[]): Promise<void> {
  await using server = await BenchServer.create(program);
  await server.start("--embedded-controllers=scheduler");
  await measurePods(figures, server, "scheduler in the API server", undefined);
}

function startScheduler(program: readonly string[], home: string, { server, token }: Credentials): ChildProcess {
  const kubeconfig = join(home, "kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  const [file = "", ...words] = program;
  const flags = [`--kubeconfig=${kubeconfig}`, "--secure-port=0", "--leader-elect=false"];
  return spawn(file, [...words, "scheduler", ...flags], { stdio: "ignore" });
}

async function measurePods(
  figures: Figures,
  server: BenchServer,
  what: string,
  schedulerPid: number | undefined,
): Promise<void> {
  using connection = new Connection(server.credentials);
  await closedLoop(NODES, CONCURRENCY, (index) => createNode(connection, index));
  const serverCpu = cpuMs(server.pid);
  const schedulerCpu = schedulerPid === undefined ? 0 : cpuMs(schedulerPid);
  const began = performance.now();
  await closedLoop(PODS, CONCURRENCY, (index) => createPod(connection, index));
  const createdMs = performance.now() - began;
  await waitUntilBound(connection);
  const boundMs = performance.now() - began;
  figures.addAll(`${PODS} pods on ${NODES} nodes, ${what}`, {
    "pods bound/s": (PODS / boundMs) * 1000,
    "pods created/s": (PODS / createdMs) * 1000,
    "µs CPU of the server each": ((cpuMs(server.pid) - serverCpu) * 1000) / PODS,
    ...(schedulerPid === undefined ? {} : { "of the scheduler": ((cpuMs(schedulerPid) - schedulerCpu) * 1000) / PODS }),
  });
}

async function createNode(connection: Connection, index: number): Promise<void> {
  const name = `node-${index}`;
  const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": `zone-${index % 3}` };
  const amounts = { cpu: "32", memory: "64Gi", pods: "110" };
  const status = { capacity: amounts, allocatable: amounts, conditions: [{ type: "Ready", status: "True" }] };
  expectStatus(await connection.request("POST", "/api/v1/nodes", { metadata: { name, labels }, status }), 201);
  // The server adds a taint to nodes that are not ready yet.
  const patch = { spec: { taints: null } };
  const type = "application/merge-patch+json";
  expectStatus(await connection.request("PATCH", `/api/v1/nodes/${name}`, patch, { type }), 200);
}

async function createPod(connection: Connection, index: number): Promise<void> {
  const container = { name: "c", image: "web:1", resources: { requests: { cpu: "100m", memory: "128Mi" } } };
  const metadata = { name: `pod-${index}`, labels: { app: `app-${index % APPS}` } };
  const pod = { metadata, spec: { containers: [container] } };
  expectStatus(await connection.request("POST", "/api/v1/namespaces/default/pods", pod), 201);
}

async function waitUntilBound(connection: Connection): Promise<void> {
  const path = "/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3D&limit=1";
  for (const until = performance.now() + BOUND_MS_MAX; performance.now() < until; await sleep(20)) {
    const { body } = await connection.request("GET", path);
    if ((JSON.parse(body) as { readonly items: readonly unknown[] }).items.length === 0) return;
  }
  throw new Error(`Not all pods were bound within ${BOUND_MS_MAX} ms`);
}
