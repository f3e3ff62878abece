/** Streams through an API server and an agent that are processes of their own. */
import { Agent } from "node:https";
import { AgentProcess } from "../acceptance/cluster/agent-process.ts";
import { createCriClient } from "../agent/runtime/cri-client.ts";
import { loadKubeconfig } from "../client/kubeconfig/kubeconfig.ts";
import { systemClock } from "../std/time/clock.ts";
import { findMissing, type PrivateContainerd, startPrivateContainerd } from "../testing/agent/private-containerd.ts";
import { until } from "../testing/std/until.ts";
import type { Figures } from "./figures.ts";
import { Connection, expectStatus } from "./load.ts";
import { measureMemory, type Processes, streamKinds, type Target } from "./open-streams.ts";
import { PODS } from "./pod-starts.ts";
import { findRuntimeTarget, measureDownloads, streamsPod } from "./streams.ts";

export async function measureSeparateStreams(figures: Figures, program: readonly string[]): Promise<void> {
  const missing = await findMissing();
  if (missing.length > 0) return console.error(`Skipping section separate-streams: ${missing.join(", ")} missing.`);
  await using containerd = await startPrivateContainerd();
  // New processes for each kind: what the one before has freed would be used again.
  for (const [index, kind] of Object.keys(streamKinds).entries()) {
    await withProcesses(containerd, program, `bench${index}`, async (pids, target) => {
      await measureMemory(figures, pids, target, kind);
      if (index > 0) return;
      using cri = createCriClient({ endpoint: containerd.endpoint, requestTimeoutMs: 60_000, clock: systemClock });
      await measureDownloads(figures, pids, { direct: () => findRuntimeTarget(cri), through: target });
    });
  }
}

async function withProcesses(
  containerd: PrivateContainerd,
  program: readonly string[],
  name: string,
  measure: (pids: Processes, target: Target) => Promise<void>,
): Promise<void> {
  await using node = await AgentProcess.create({ containerd, name, program });
  await node.startServer();
  node.start("cluster");
  const { server, ca, token = "" } = await loadKubeconfig(node.adminConfig);
  using connection = new Connection({ server, ca: String(ca), token });
  await until("the account", async () => {
    const path = "/api/v1/namespaces/default/serviceaccounts/default";
    return (await connection.request("GET", path)).status === 200 ? true : undefined;
  });
  expectStatus(await connection.request("POST", PODS, streamsPod(containerd.image, "Never")), 201);
  await until("the pod to run", async () => {
    const { body } = await connection.request("GET", `${PODS}/streams`);
    return JSON.parse(body).status?.phase === "Running" ? true : undefined;
  });
  const { hostname, port } = new URL(server);
  const target: Target = {
    secure: true,
    host: hostname,
    port: Number(port),
    path: `${PODS}/streams`,
    agent: new Agent({ ca }),
    headers: { authorization: `Bearer ${token}` },
  };
  await measure({ "API server": node.serverPid, agent: node.pid }, target);
}
