/** The agent with its own containerd: start latency and cost of pods, cost of idle pods, recovery after a kill. */
import { readFileSync } from "node:fs";
import { get } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { AgentProcess } from "../acceptance/cluster/agent-process.ts";
import { loadKubeconfig } from "../client/kubeconfig/kubeconfig.ts";
import { findMissing, startPrivateContainerd } from "../testing/agent/private-containerd.ts";
import { until } from "../testing/std/until.ts";
import type { Figures } from "./figures.ts";
import { Connection, expectStatus } from "./load.ts";
import { measureRuntime, measureStarts, PODS, pod } from "./pod-starts.ts";
import { CpuGroup, cpuMs, memory } from "./process.ts";

const CONCURRENT_STARTS = [1, 10, 50];
const IDLE_PODS = [0, 30, 110];
const SETTLE_MS = 15_000;
const IDLE_MS = 20_000;
const SECONDS_PER_DAY = 86_400;
const WAIT_MS_MAX = 600_000;

export async function measureAgent(figures: Figures, program: readonly string[]): Promise<void> {
  const missing = await findMissing();
  if (missing.length > 0) return console.error(`Skipping section agent: ${missing.join(", ")} missing.`);
  using programs = new CpuGroup(`/svc-bench-${process.pid}`);
  await using containerd = await startPrivateContainerd(programs.commandPrefix);
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
  const setup = { figures, containerd, node, connection, runtime: [programs, new CpuGroup(node.cgroup)] };
  for (const count of CONCURRENT_STARTS) {
    await measureRuntime(setup, count);
    await measureStarts(setup, count);
  }
  let created = 0;
  for (const count of IDLE_PODS) {
    for (; created < count; created++)
      expectStatus(await connection.request("POST", PODS, pod(`held-${created}`)), 201);
    await until(`${count} pods`, async () => ((await countRunning(node)) >= count ? true : undefined), {
      timeoutMs: WAIT_MS_MAX,
    });
    await measureIdle(figures, node, count);
  }
  await measureAdoption(figures, node, created);
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
  await until("the pods to be adopted", async () => ((await countRunning(node)) >= count ? true : undefined), {
    timeoutMs: WAIT_MS_MAX,
  });
  figures.add(`agent killed: from its start until it has ${count} pods again`, performance.now() - began, "ms");
}

/** The number of pods with a running container, as the agent reports it. */
function countRunning(node: AgentProcess): Promise<number> {
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port: node.port, path: "/runningpods/", rejectUnauthorized: false };
    get({ ...options, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve(response.statusCode === 200 ? JSON.parse(text).items.length : 0);
      });
    }).on("error", () => resolve(0));
  });
}

/** Bytes written to disk, counted by the kernel. */
function bytesWritten(pid: number): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
}
