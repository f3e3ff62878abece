/** The agent by itself, over a containerd of its own: how soon pods run, what they cost, how soon they are adopted. */
import { readFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { missing, type PrivateContainerd, startPrivateContainerd } from "../agent/private-containerd.ts";
import { type CriClient, createCriClient } from "../agent/runtime/cri.ts";
import { loadKubeconfig } from "../client/kubeconfig.ts";
import { AgentProcess } from "../e2e/agent-process.ts";
import { until } from "../e2e/cluster.ts";
import { systemClock } from "../std/clock.ts";
import type { Figures } from "./figures.ts";
import { Connection, expectStatus, quantile } from "./load.ts";
import { cpuMs, memory } from "./process.ts";

const PODS = "/api/v1/namespaces/default/pods";
const AT_ONCE = [1, 10, 50];
/** Rounds, so that each number at once has at least so many pods. */
const SAMPLES_MIN = 20;
const PODS_HELD = [0, 30, 110];
const SETTLE_MS = 15_000;
const IDLE_MS = 20_000;
const SECONDS_PER_DAY = 86_400;
const WAIT_MS_MAX = 600_000;

export async function measureAgent(figures: Figures, program: readonly string[]): Promise<void> {
  const lacking = await missing();
  if (lacking.length > 0) return console.error(`No agent is measured: ${lacking.join(", ")} missing.`);
  await using containerd = await startPrivateContainerd();
  await using node = await AgentProcess.create({ containerd, name: "bench", program });
  await node.startServer();
  node.start("cluster");
  const { server, ca, token } = await loadKubeconfig(node.adminConfig);
  using connection = new Connection({ server, ca: String(ca), token: token ?? "" });
  await until("the node", async () => (node.log.includes("Registered node") ? true : undefined));
  await until("the account", async () => {
    const path = "/api/v1/namespaces/default/serviceaccounts/default";
    return (await connection.request("GET", path)).status === 200 ? true : undefined;
  });
  for (const count of AT_ONCE) {
    await measureRuntime(figures, containerd, count);
    await measureStarts(figures, connection, count);
  }
  let held = 0;
  for (const count of PODS_HELD) {
    for (; held < count; held++) expectStatus(await connection.request("POST", PODS, pod(`held-${held}`)), 201);
    await until(`${count} pods`, async () => ((await running(node)) >= count ? true : undefined), WAIT_MS_MAX);
    await measureIdle(figures, node, count);
  }
  await measureAdoption(figures, node, held);
}

/** Each from the send of its create until a watch shows it running. */
async function measureStarts(figures: Figures, connection: Connection, count: number): Promise<void> {
  const times: number[] = [];
  for (let round = 0; times.length < Math.max(count, SAMPLES_MIN); round++) {
    using seen = await phases(connection);
    const names = Array.from({ length: count }, (_, index) => `start-${count}-${round}-${index}`);
    await Promise.all(
      names.map(async (name) => {
        const began = performance.now();
        const runs = seen.running(name);
        expectStatus(await connection.request("POST", PODS, pod(name)), 201);
        await runs;
        times.push(performance.now() - began);
      }),
    );
    const gone = names.map((name) => seen.gone(name));
    for (const name of names) await connection.request("DELETE", `${PODS}/${name}`);
    await Promise.all(gone);
  }
  figures.addAll(`pod created to Running, ${count} at once`, spread(times));
}

interface Phases extends Disposable {
  running(name: string): Promise<void>;
  gone(name: string): Promise<void>;
}

async function phases(connection: Connection): Promise<Phases> {
  const list = JSON.parse((await connection.request("GET", `${PODS}?limit=1`)).body);
  const waiting = new Map<string, () => void>();
  let rest = "";
  let closed = false;
  const onData = (piece: Buffer): void => {
    if (closed) return;
    const lines = (rest + piece.toString("utf8")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { type, object } = JSON.parse(line);
      const what = type === "DELETED" ? "gone" : object.status?.phase === "Running" ? "running" : "";
      waiting.get(`${what} ${object.metadata.name}`)?.();
    }
  };
  const path = `${PODS}?watch=true&timeoutSeconds=300&resourceVersion=${list.metadata.resourceVersion}`;
  void connection.request("GET", path, undefined, { onData }).catch(() => undefined);
  const wait = (what: string): Promise<void> => new Promise((resolve) => void waiting.set(what, resolve));
  return {
    running: (name) => wait(`running ${name}`),
    gone: (name) => wait(`gone ${name}`),
    [Symbol.dispose]() {
      closed = true;
    },
  };
}

/** The same calls that the agent makes for such a pod, made directly. */
async function measureRuntime(figures: Figures, containerd: PrivateContainerd, count: number): Promise<void> {
  using cri = createCriClient({ endpoint: containerd.endpoint, requestTimeoutMs: WAIT_MS_MAX, clock: systemClock });
  const times: number[] = [];
  for (let round = 0; times.length < Math.max(count, SAMPLES_MIN); round++) {
    const names = Array.from({ length: count }, (_, index) => `direct-${count}-${round}-${index}`);
    const sandboxes = await Promise.all(
      names.map(async (name) => {
        const began = performance.now();
        const id = await startDirectly(cri, containerd, name);
        times.push(performance.now() - began);
        return id;
      }),
    );
    await Promise.all(
      sandboxes.map(async (podSandboxId) => {
        await cri.runtime.stopPodSandbox({ podSandboxId });
        await cri.runtime.removePodSandbox({ podSandboxId });
      }),
    );
  }
  figures.addAll(`the runtime's share of it, ${count} at once`, spread(times));
}

async function startDirectly({ runtime }: CriClient, containerd: PrivateContainerd, name: string): Promise<string> {
  const config = {
    metadata: { name, uid: name, namespace: "direct", attempt: 0 },
    hostname: name,
    logDirectory: join(containerd.directory, "direct", name),
    linux: { securityContext: { namespaceOptions: { network: "POD", pid: "CONTAINER", ipc: "POD" } } },
  } as const;
  const { podSandboxId = "" } = await runtime.runPodSandbox({ config });
  const { containerId = "" } = await runtime.createContainer({
    podSandboxId,
    sandboxConfig: config,
    config: { metadata: { name: "c", attempt: 0 }, image: { image: containerd.image }, logPath: "c.log" },
  });
  await runtime.startContainer({ containerId });
  return podSandboxId;
}

async function measureIdle(figures: Figures, node: AgentProcess, count: number): Promise<void> {
  await sleep(SETTLE_MS);
  const before = { cpu: cpuMs(node.pid), bytes: bytesWritten(node.pid) };
  await sleep(IDLE_MS);
  const { rss, pss } = memory(node.pid);
  const perDay = ((bytesWritten(node.pid) - before.bytes) * SECONDS_PER_DAY * 1000) / IDLE_MS / 2 ** 20;
  figures.addAll(`agent with ${count} pods, idle`, {
    "% of a core": ((cpuMs(node.pid) - before.cpu) * 100) / IDLE_MS,
    "MiB resident": rss,
    "MiB proportional": pss,
    "MiB written a day": perDay,
  });
}

async function measureAdoption(figures: Figures, node: AgentProcess, count: number): Promise<void> {
  await node.stop("SIGKILL");
  const began = performance.now();
  node.start("cluster");
  await until("the pods to be adopted", async () => ((await running(node)) >= count ? true : undefined), WAIT_MS_MAX);
  figures.add(`agent killed: from its start until it has ${count} pods again`, performance.now() - began, "ms");
}

/** Pods of which the agent knows that a container runs. */
function running(node: AgentProcess): Promise<number> {
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port: node.port, path: "/runningpods", rejectUnauthorized: false };
    get({ ...options, agent: false }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () => {
        const text = Buffer.concat(pieces).toString();
        resolve(response.statusCode === 200 ? JSON.parse(text).items.length : 0);
      });
    }).on("error", () => resolve(0));
  });
}

/** To disk, as the kernel counts it. */
function bytesWritten(pid: number): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
}

function spread(times: readonly number[]) {
  return { "ms p50": quantile(times, 0.5), "ms p99": quantile(times, 0.99) };
}

function pod(name: string): unknown {
  const container = { name: "c", image: "localhost/bb:1", imagePullPolicy: "Never", command: ["sleep", "3600"] };
  const spec = {
    nodeName: "n1",
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
    containers: [container],
  };
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
}
