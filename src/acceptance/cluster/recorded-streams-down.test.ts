/** Replays requests of Kubernetes 1.33 while the agent has no debugging handlers, and while it does not run. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { AgentProcess } from "./agent-process.ts";
import { command, findMissingRequirement } from "./cluster.ts";
import {
  hasRecording,
  type RecordedCase,
  type ReplayTarget,
  readCases,
  readPods,
} from "./recorded-streams/recording.ts";
import { replayAll } from "./recorded-streams/replay.ts";

const NAMESPACE = "st";
const NODE = "n1";
const ALL_MS_MAX = 180_000;

t.setTimeout(ALL_MS_MAX);
const missing = hasRecording()
  ? (findMissingRequirement() ?? (await findMissing())[0])
  : "the recordings are not present";
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("requests without debugging handlers, and without an agent, are answered as recorded", async (t) => {
    await using containerd = await startPrivateContainerd();
    await using node = await AgentProcess.create({ containerd, name: "recorded" });
    const file = join(node.directory, "agent.json");
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), enableDebuggingHandlers: false }));
    await node.startServer();
    node.start("cluster");
    await createPods(node);
    await testCases(t, node, readCases("off"));
    await node.stop();
    await testCases(t, node, readCases("down"));
  });
}

async function createPods(node: AgentProcess): Promise<void> {
  const kubectl = async (args: readonly string[], input = ""): Promise<string> => {
    const { code, stdout, stderr } = await command("kubectl", [`--kubeconfig=${node.adminConfig}`, ...args], { input });
    if (code !== 0) throw new Error(stderr);
    return stdout;
  };
  await kubectl(["create", "namespace", NAMESPACE]);
  const items = readPods(NODE).standing.filter(({ metadata: { name } }) => name === "web" || name === "done");
  await kubectl(["-n", NAMESPACE, "create", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await until("the node", async () => {
    const port = await kubectl([
      "get",
      "nodes",
      "-o",
      "jsonpath={.items[*].status.daemonEndpoints.kubeletEndpoint.Port}",
    ]);
    return port === String(node.port);
  });
}

async function testCases(t: Test, node: AgentProcess, cases: readonly RecordedCase[]): Promise<void> {
  for (const [id, problem] of await replayAll(targetOf(node), cases)) {
    t.ok(problem === undefined, `${id}: ${problem ?? "as recorded"}`);
  }
}

function targetOf(node: AgentProcess): ReplayTarget {
  const server = new URL(/server: (\S+)/.exec(readFileSync(node.adminConfig, "utf8"))?.[1] ?? "");
  const token = /token: (\S+)/.exec(readFileSync(node.adminConfig, "utf8"))?.[1] ?? "";
  const noPods = (): Promise<never> => Promise.reject(new Error("no case has a pod of its own"));
  return {
    address: ({ to }) => ({ host: "127.0.0.1", port: to === "agent" ? node.port : Number(server.port) }),
    // All may do everything at the agent.
    identity: ({ to }) => (to === "agent" ? {} : { token }),
    path: ({ request }) => request.path.replaceAll("$NS", NAMESPACE).replaceAll("$NODE", NODE),
    replace: (text) => text.replaceAll("stock", NODE),
    createPod: noPods,
    deletePod: noPods,
  };
}
