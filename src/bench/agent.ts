/** The agent by itself, over a containerd of its own: how soon pods run, what they cost, how soon they are adopted. */
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

const AT_ONCE = [1, 10, 50];
const PODS_HELD = [0, 30, 110];
const SETTLE_MS = 15_000;
const IDLE_MS = 20_000;
const SECONDS_PER_DAY = 86_400;
const WAIT_MS_MAX = 600_000;

export async function measureAgent(figures: Figures, program: readonly string[]): Promise<void> {
  const lacking = await findMissing();
  if (lacking.length > 0) return console.error(`No agent is measured: ${lacking.join(", ")} missing.`);
  using programs = new CpuGroup(`/svc-bench-${process.pid}`);
  await using containerd = await startPrivateContainerd(programs.through);
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
  const place = { figures, containerd, node, connection, runtime: [programs, new CpuGroup(node.cgroup)] };
  for (const count of AT_ONCE) {
    await measureRuntime(place, count);
    await measureStarts(place, count);
  }
  let held = 0;
  for (const count of PODS_HELD) {
    for (; held < count; held++) expectStatus(await connection.request("POST", PODS, pod(`held-${held}`)), 201);
    await until(`${count} pods`, async () => ((await running(node)) >= count ? true : undefined), {
      timeoutMs: WAIT_MS_MAX,
    });
    await measureIdle(figures, node, count);
  }
  await measureAdoption(figures, node, held);
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
  await until("the pods to be adopted", async () => ((await running(node)) >= count ? true : undefined), {
    timeoutMs: WAIT_MS_MAX,
  });
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
