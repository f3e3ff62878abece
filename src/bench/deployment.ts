/** Pods a second of a Deployment of 1,000: from its creation until all pods are ready, with hollow agents. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus } from "./load.ts";
import { cpuMs, memory } from "./process.ts";
import { BenchServer } from "./server.ts";

const NODES = 20;
const REPLICAS = 1000;
/** Pods whose status hollow agents write at the same time. */
const AGENTS = 16;
const CONTROLLERS = ["deployment", "replicaset", "scheduler", "endpointslice", "garbage-collector"];
const WAIT_MS_MAX = 300_000;
const PODS = "/api/v1/namespaces/default/pods";
const DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments";

export async function measureDeployment(figures: Figures, program: readonly string[]): Promise<void> {
  await using server = await BenchServer.create(program);
  await server.start(`--embedded-controllers=${CONTROLLERS.join()}`);
  using connection = new Connection(server.credentials);
  await closedLoop(NODES, AGENTS, (index) => createNode(connection, `node-${index}`));
  using agents = new HollowAgents(connection);
  await agents.start();
  const cpu = cpuMs(server.pid);
  const began = performance.now();
  expectStatus(await connection.request("POST", DEPLOYMENT, deployment()), 201);
  await waitUntilReady(connection, REPLICAS);
  const createdMs = performance.now() - began;
  figures.addAll(`a Deployment of ${REPLICAS}, hollow agents`, {
    "pods ready/s": (REPLICAS / createdMs) * 1000,
    "ms CPU of the server each": (cpuMs(server.pid) - cpu) / REPLICAS,
    "MiB resident": memory(server.pid).rss,
  });
}

function deployment(): unknown {
  const labels = { app: "web" };
  const spec = { containers: [{ name: "c", image: "web:1", resources: { requests: { cpu: "10m" } } }] };
  return {
    metadata: { name: "web" },
    spec: { replicas: REPLICAS, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

async function createNode(connection: Connection, name: string): Promise<void> {
  const amounts = { cpu: "64", memory: "64Gi", pods: "110" };
  const status = { capacity: amounts, allocatable: amounts, conditions: [{ type: "Ready", status: "True" }] };
  const metadata = { name, labels: { "kubernetes.io/hostname": name } };
  expectStatus(await connection.request("POST", "/api/v1/nodes", { metadata, status }), 201);
  // The server adds a taint to nodes that are not ready yet.
  const type = "application/merge-patch+json";
  const path = `/api/v1/nodes/${name}`;
  expectStatus(await connection.request("PATCH", path, { spec: { taints: null } }, { type }), 200);
}

async function waitUntilReady(connection: Connection, count: number): Promise<void> {
  for (const until = performance.now() + WAIT_MS_MAX; performance.now() < until; await sleep(50)) {
    const { body } = await connection.request("GET", `${DEPLOYMENT}/web`);
    const { status } = JSON.parse(body) as { readonly status?: { readonly readyReplicas?: number } };
    if (status?.readyReplicas === count) return;
  }
  throw new Error(`Not all pods were ready within ${WAIT_MS_MAX} ms`);
}

interface WatchedPod {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly nodeName?: string };
  readonly status?: { readonly phase?: string };
}

/** Report each pod as ready as soon as it is bound. */
class HollowAgents implements Disposable {
  readonly #connection: Connection;
  /** Names of pods that are bound. */
  readonly #bound: string[] = [];
  readonly #seen = new Set<string>();
  #busy = 0;
  #rest = "";
  #isClosed = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async start(): Promise<void> {
    const { body } = await this.#connection.request("GET", `${PODS}?limit=1`);
    const { metadata } = JSON.parse(body) as { readonly metadata: { readonly resourceVersion: string } };
    const path = `${PODS}?watch=true&resourceVersion=${metadata.resourceVersion}`;
    void this.#connection
      .request("GET", path, undefined, { onData: (chunk) => this.#read(chunk.toString("utf8")) })
      .catch(() => undefined);
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const { metadata, spec, status } = (JSON.parse(line) as { readonly object: WatchedPod }).object;
      if (spec?.nodeName === undefined || status?.phase === "Running" || this.#seen.has(metadata.name)) continue;
      this.#seen.add(metadata.name);
      this.#bound.push(metadata.name);
    }
    while (this.#busy < AGENTS && this.#bound.length > 0) void this.#work();
  }

  async #work(): Promise<void> {
    this.#busy++;
    for (let name = this.#bound.shift(); name !== undefined && !this.#isClosed; name = this.#bound.shift()) {
      const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, "");
      const conditions = [{ type: "Ready", status: "True", lastTransitionTime }];
      const patch = { status: { phase: "Running", conditions, podIP: "10.1.2.3" } };
      const type = "application/strategic-merge-patch+json";
      const reply = await this.#connection.request("PATCH", `${PODS}/${name}/status`, patch, { type });
      expectStatus(reply, 200);
    }
    this.#busy--;
  }
}
