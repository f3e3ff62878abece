/** Container logs from a standalone agent: streaming, many followers, a container that writes as fast as it can. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AgentProcess } from "../acceptance/cluster/agent-process.ts";
import { findMissing, startPrivateContainerd } from "../testing/agent/private-containerd.ts";
import { until } from "../testing/std/until.ts";
import type { Figures } from "./figures.ts";
import { cpuMs, memory } from "./process.ts";

const MIB = 2 ** 20;
const FOLLOWERS = 200;
const IDLE_MS = 10_000;
const FAST_MS = 30_000;
/** 100 MB in lines of 100 bytes. */
const FINISHED = `BEGIN { pad = sprintf("%90s", ""); for (n = 0; n < 1000000; n++) print n pad }`;
/** A line ten times in a second. */
const SLOW = "while true; do echo line; usleep 100000; done";
const FAST = `BEGIN { pad = sprintf("%1000s", ""); for (;;) print n++ pad }`;

export async function measureLogs(figures: Figures, program: readonly string[]): Promise<void> {
  const missing = await findMissing();
  if (missing.length > 0) return console.error(`Skipping section logs: ${missing.join(", ")} missing.`);
  await using containerd = await startPrivateContainerd();
  await using node = await AgentProcess.create({ containerd, name: "bench", program });
  const file = join(node.directory, "agent.json");
  const fields = { containerLogMaxSize: "200Mi", containerLogMaxFiles: 3, containerLogMonitorInterval: "3s" };
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...fields }));
  const start = (name: string, command: readonly string[]): void => {
    const container = { name: "c", image: containerd.image, imagePullPolicy: "Never", command };
    const spec = { restartPolicy: "Never", terminationGracePeriodSeconds: 0, containers: [container] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec };
    writeFileSync(join(node.manifests, `${name}.json`), JSON.stringify(pod));
  };
  start("finished", ["busybox", "awk", FINISHED]);
  start("slow", ["sh", "-c", SLOW]);
  node.start("standalone");
  await until("the log", async () => ((await open(node, "finished", "tailLines=1")) === undefined ? undefined : true));
  await until("the end of the log", async () => (await readAll(node, "finished", "tailLines=1")).startsWith("999999 "));
  await measureDownload(figures, node);
  await measureFollowers(figures, node);
  start("fast", ["busybox", "awk", FAST]);
  await until("the container", async () =>
    (await open(node, "fast", "tailLines=1")) === undefined ? undefined : true,
  );
  await measureFast(figures, node);
}

async function measureDownload(figures: Figures, node: AgentProcess): Promise<void> {
  const [began, cpu] = [performance.now(), cpuMs(node.pid)];
  const bytes = await count(await open(node, "finished", ""));
  const seconds = (performance.now() - began) / 1000;
  figures.addAll("log of 1,000,000 lines", {
    "MB/s": bytes / 1e6 / seconds,
    "ms CPU for 100 MB": ((cpuMs(node.pid) - cpu) * 1e8) / bytes,
  });
}

async function measureFollowers(figures: Figures, node: AgentProcess): Promise<void> {
  const measure = async (): Promise<number> => {
    const before = cpuMs(node.pid);
    await sleep(IDLE_MS);
    return ((cpuMs(node.pid) - before) * 100) / IDLE_MS;
  };
  const without = { cpu: await measure(), rss: memory(node.pid).rss };
  const responses = await Promise.all(
    Array.from({ length: FOLLOWERS }, () => open(node, "slow", "follow=true&tailLines=1")),
  );
  for (const response of responses) response?.resume();
  figures.addAll(`${FOLLOWERS} followers of a container that writes 10 lines a second`, {
    "% of a core": (await measure()) - without.cpu,
    "KiB for each": ((memory(node.pid).rss - without.rss) * 1024) / FOLLOWERS,
  });
  for (const response of responses) response?.destroy();
}

/** A container that writes as fast as the runtime takes it, one that reads all, and many that do not read. */
async function measureFast(figures: Figures, node: AgentProcess): Promise<void> {
  const before = { cpu: cpuMs(node.pid), rss: memory(node.pid).rss };
  const stalled = await Promise.all(Array.from({ length: FOLLOWERS }, () => open(node, "fast", "follow=true")));
  const follower = await open(node, "fast", "follow=true&tailLines=1");
  const began = performance.now();
  let [bytes, disk, rss] = [0, 0, 0];
  follower?.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  while (performance.now() - began < FAST_MS) {
    await sleep(200);
    disk = Math.max(disk, diskUse(join(node.directory, "logs")));
    rss = Math.max(rss, memory(node.pid).rss);
  }
  const seconds = (performance.now() - began) / 1000;
  figures.addAll(`a container that writes without pause, one follower, ${FOLLOWERS} that do not read`, {
    "MB/s": bytes / 1e6 / seconds,
    "% of a core": (cpuMs(node.pid) - before.cpu) / seconds / 10,
    "MiB on disk at most": disk / MIB,
    "MiB resident more": rss - before.rss,
  });
  for (const response of [...stalled, follower]) response?.destroy();
}

function diskUse(root: string): number {
  const directory = readdirSync(root).find((name) => name.startsWith("default_fast-")) ?? "";
  let bytes = 0;
  for (const name of readdirSync(join(root, directory, "c"))) {
    bytes += statSync(join(root, directory, "c", name), { throwIfNoEntry: false })?.size ?? 0;
  }
  return bytes;
}

/** Undefined unless the agent serves the log. */
function open(node: AgentProcess, pod: string, query: string): Promise<IncomingMessage | undefined> {
  const path = `/containerLogs/default/${pod}-n1/c?${query}`;
  const options = { host: "127.0.0.1", port: node.port, path, rejectUnauthorized: false, agent: false };
  return new Promise((resolve) => {
    get(options, (response) => {
      response.on("error", () => undefined);
      if (response.statusCode !== 200) response.destroy();
      resolve(response.statusCode === 200 ? response : undefined);
    }).on("error", () => resolve(undefined));
  });
}

async function readAll(node: AgentProcess, pod: string, query: string): Promise<string> {
  let text = "";
  for await (const chunk of (await open(node, pod, query)) ?? []) text += String(chunk);
  return text;
}

async function count(response: IncomingMessage | undefined): Promise<number> {
  let bytes = 0;
  for await (const chunk of (response ?? []) as AsyncIterable<Buffer>) bytes += chunk.length;
  return bytes;
}
