/** What Prometheus costs: pages of figures from a standalone agent with containers that do nothing. */
import { writeFileSync } from "node:fs";
import { Agent, get } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AgentProcess } from "../acceptance/cluster/agent-process.ts";
import { findMissing, startPrivateContainerd } from "../testing/agent/private-containerd.ts";
import { until } from "../testing/std/until.ts";
import type { Figures } from "./figures.ts";
import { cpuMs } from "./process.ts";

const PODS = 30;
const WAIT_MS_MAX = 300_000;
const PATHS = ["/metrics/cadvisor", "/metrics/resource", "/metrics", "/stats/summary"];
const SETTLE_MS = 30_000;
/** The usual interval of Prometheus. */
const INTERVAL_MS = 15_000;
const ROUNDS = 6;
/** The time for work after a response: garbage collection, and compression on other threads. */
const AFTER_MS = 100;

export async function measureScrapes(figures: Figures, program: readonly string[]): Promise<void> {
  const missing = await findMissing();
  if (missing.length > 0) return console.error(`Skipping section scrapes: ${missing.join(", ")} missing.`);
  await using containerd = await startPrivateContainerd();
  await using node = await AgentProcess.create({ containerd, name: "bench", program });
  for (let index = 0; index < PODS; index++) {
    const container = { name: "c", image: containerd.image, imagePullPolicy: "Never", command: ["sleep", "3600"] };
    const spec = { dnsPolicy: "Default", terminationGracePeriodSeconds: 0, containers: [container] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: `p${index}`, namespace: "default" }, spec };
    writeFileSync(join(node.manifests, `p${index}.json`), JSON.stringify(pod));
  }
  node.start("standalone");
  // As Prometheus: one connection, and compressed pages.
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const read = (path: string): Promise<number> => readPage(agent, node.port, path);
  const running = `kubelet_running_pods ${PODS}\n`;
  await until("the pods to run", async () => (await readText(agent, node.port)).includes(running), {
    timeoutMs: WAIT_MS_MAX,
  });
  await sleep(SETTLE_MS);
  const spent = new Map(PATHS.map((path) => [path, { cpuMs: 0, bytes: 0 }]));
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    for (const [path, sum] of spent) {
      const before = cpuMs(node.pid);
      sum.bytes += await read(path);
      await sleep(AFTER_MS);
      sum.cpuMs += cpuMs(node.pid) - before;
    }
    await sleep(Math.max(0, began + INTERVAL_MS - performance.now()));
  }
  for (const [path, sum] of spent) {
    figures.addAll(`${path} with ${PODS} pods, every ${INTERVAL_MS / 1000} s`, {
      "ms CPU": sum.cpuMs / ROUNDS,
      "% of a core": (sum.cpuMs / ROUNDS / INTERVAL_MS) * 100,
      "KiB compressed": sum.bytes / ROUNDS / 1024,
    });
  }
  agent.destroy();
}

function readText(agent: Agent, port: number): Promise<string> {
  return new Promise((resolve) => {
    get({ host: "127.0.0.1", port, path: "/metrics", agent }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(text));
    }).on("error", () => resolve(""));
  });
}

/** Resolves with the bytes of the body. */
function readPage(agent: Agent, port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path, agent, headers: { "accept-encoding": "gzip" } }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`Cannot read ${path}: status ${response.statusCode}`));
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on("end", () => resolve(bytes));
      response.on("error", reject);
    }).on("error", reject);
  });
}
