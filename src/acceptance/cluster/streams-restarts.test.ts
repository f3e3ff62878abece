/**
 * exec, attach, port-forward and followed logs that are open while containerd, the agent or the API server ends and
 * starts again: each ends as with Kubernetes or goes on, and leaves no process and no open file.
 */
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import t, { type Test } from "tap";
import { findMissing, type PrivateContainerd, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { AgentProcess } from "./agent-process.ts";
import { type CommandResult, command, findMissingRequirement } from "./cluster.ts";
import { endsOf, KubectlSession } from "./kubectl-sessions.ts";

const RUN_MS_MAX = 400_000;
const PORT = 9100;
/** Prints a line ten times in a second, and its own ID to each connection. */
const SERVER = `trap 'exit 3' TERM; id=$(cat /proc/sys/kernel/random/uuid)
busybox nc -ll -p ${PORT} -e sh -c "echo from $id; cat" & busybox usleep 300000; while :; do echo line; busybox usleep 100000; done`;
const RESTARTS = '{.status.containerStatuses[?(@.name=="server")].restartCount}';
const TIMEOUT = { timeoutMs: 20_000 };
/** Handles that may differ: connections kept for further requests. */
const HANDLES_MORE_MAX = 4;

const missing = findMissingRequirement() ?? (await findMissing())[0];

t.setTimeout(RUN_MS_MAX);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("open streams end or go on when a process is restarted", { timeout: RUN_MS_MAX }, async (t) => {
    await using containerd = await startPrivateContainerd();
    await using node = await AgentProcess.create({ containerd, name: "restarts" });
    await node.startServer();
    node.start("cluster");
    await createPod(node, containerd);
    for (const binary of await endsOf(kubectlPaths())) {
      const setting = { node, containerd, ...binary };
      await t.test(`port-forward after the container's restart, ${binary.path}`, (t) => testContainer(t, setting));
      for (const [name, restart] of Object.entries(restarts)) {
        await t.test(`${name}, ${binary.path}`, { timeout: RUN_MS_MAX }, (t) => testRestart(t, setting, restart));
      }
    }
  });
}

interface Setting {
  readonly node: AgentProcess;
  readonly containerd: PrivateContainerd;
  readonly path: string;
  readonly minor: number;
}

/** How a stream ends: the exit code and what kubectl prints. Undefined: it goes on. */
interface End {
  readonly code: number;
  readonly errors: RegExp;
}

interface Restart {
  readonly run: (setting: Setting) => Promise<void>;
  /** With kubectl 1.31 and later. Before, kubectl takes the end of a connection for the end of a command. */
  readonly commands: End;
  readonly log: End | undefined;
  /** A shim keeps the command that its containerd has started, with its input open. */
  readonly leavesCommands?: true;
}

const LOST_BY_AGENT: End = { code: 1, errors: /Internal error occurred: error reading from error stream: unexp.* EOF/ };
const LOST_BY_CLIENT: End = { code: 1, errors: /close 1006 \(abnormal closure\): unexpected EOF/ };
/** kube-apiserver ends the log without an error; here the client can see that it is not complete. */
const RESET: End = { code: 1, errors: /stream error|unexpected EOF/ };
const SUCCESS: End = { code: 0, errors: /^(If you don't see a command prompt, try pressing enter.\n)?$/ };

const restarts: Readonly<Record<string, Restart>> = {
  "containerd killed": {
    run: async ({ containerd }) => {
      await containerd.kill();
      await containerd.start();
    },
    commands: LOST_BY_AGENT,
    log: undefined,
    leavesCommands: true,
  },
  "agent stopped": { run: (setting) => restartAgent(setting, "SIGTERM"), commands: LOST_BY_AGENT, log: RESET },
  "agent killed": { run: (setting) => restartAgent(setting, "SIGKILL"), commands: LOST_BY_AGENT, log: RESET },
  "API server stopped": {
    run: (setting) => restartServer(setting, "SIGTERM"),
    commands: LOST_BY_CLIENT,
    log: RESET,
  },
  "API server killed": {
    run: (setting) => restartServer(setting, "SIGKILL"),
    commands: LOST_BY_CLIENT,
    log: RESET,
  },
};

async function restartAgent({ node }: Setting, signal: NodeJS.Signals): Promise<void> {
  await node.stop(signal);
  node.start("cluster");
}

async function restartServer({ node }: Setting, signal: NodeJS.Signals): Promise<void> {
  await node.stopServer(signal);
  await node.startServer();
}

async function kubectl(node: AgentProcess, args: readonly string[], input = ""): Promise<CommandResult> {
  return await command(kubectlPaths()[0] ?? "kubectl", [`--kubeconfig=${node.adminConfig}`, ...args], { input });
}

async function createPod(node: AgentProcess, { image }: PrivateContainerd): Promise<void> {
  const shell = (name: string, script: string): object => ({
    name,
    image,
    imagePullPolicy: "Never",
    command: ["sh", "-c", script],
    stdin: true,
  });
  const spec = {
    nodeName: "n1",
    terminationGracePeriodSeconds: 0,
    containers: [shell("server", SERVER), shell("shell", "while read line; do echo got $line; done")],
  };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec };
  const { code, stderr } = await kubectl(node, ["create", "-f", "-"], JSON.stringify(pod));
  if (code !== 0) throw new Error(stderr);
  await until("the pod to run", async () => {
    return (await kubectl(node, ["get", "pod", "p", "-o", "jsonpath={.status.phase}"])).stdout === "Running";
  });
}

function start({ node, path }: Setting, ...args: readonly string[]): KubectlSession {
  return new KubectlSession(path, [`--kubeconfig=${node.adminConfig}`, ...args]);
}

async function forwardedPort(session: KubectlSession): Promise<number> {
  return await until("the port", () => Number(/127\.0\.0\.1:(\d+)/.exec(session.output)?.[1]) || undefined);
}

/** Opens a connection to the pod's server; resolves with what arrives first, "" when it closes before. */
function greet(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.once("close", () => resolve(""));
    socket.once("data", (chunk) => {
      resolve(String(chunk));
      socket.destroy();
    });
  });
}

async function testContainer(t: Test, setting: Setting): Promise<void> {
  const session = start(setting, "port-forward", "p", `:${PORT}`);
  const port = await forwardedPort(session);
  const before = await until("the server", async () => (await greet(port)) || undefined);
  const { stdout: count } = await kubectl(setting.node, ["get", "pod", "p", "-o", `jsonpath=${RESTARTS}`]);
  await kubectl(setting.node, ["exec", "p", "-c", "server", "--", "sh", "-c", "kill 1"]);
  // kubectl ends when nothing listens.
  await until("the next container's log", async () => {
    const { stdout } = await kubectl(setting.node, ["get", "pod", "p", "-o", `jsonpath=${RESTARTS}`]);
    const log = await kubectl(setting.node, ["logs", "p", "-c", "server"]);
    return Number(stdout) > Number(count) && log.stdout !== "";
  });
  const after = await greet(port);
  t.match(after, /^from /, "the same port-forward reaches the next container");
  t.not(after, before);
  await session.kill();
}

async function testRestart(t: Test, setting: Setting, { run, commands, log, leavesCommands }: Restart): Promise<void> {
  const { node, minor } = setting;
  const [agent, server] = [node.pid, node.serverPid];
  const before = [countHandles(agent), countHandles(server)] as const;
  // By which its processes are found.
  const mark = randomUUID();
  const exec = start(setting, "exec", "-i", "p", "-c", "server", "--", "sh", "-c", `echo ready; cat; : ${mark}`);
  const attach = start(setting, "attach", "-i", "p", "-c", "shell");
  const forward = start(setting, "port-forward", "p", `:${PORT}`);
  const logs = start(setting, "logs", "-f", "--tail=1", "p", "-c", "server");
  await until("the command", () => exec.output.includes("ready"));
  await until("the log", () => logs.output.includes("line"));
  await until("the attached shell", () => {
    attach.write("x\n");
    return attach.output.includes("got x");
  });
  const connection = connect(await forwardedPort(forward), "127.0.0.1");
  connection.on("error", () => {});
  const connectionClosed = new Promise((resolve) => connection.resume().once("close", resolve));
  await until("the connection", () => connection.bytesRead > 0);

  await run(setting);
  const isOld = minor < 31;
  for (const session of [exec, attach]) t.match(await session.end(), isOld ? SUCCESS : commands);
  // Before 1.23 kubectl took it for success.
  t.match(await forward.end(), { code: minor < 23 ? 0 : 1, errors: /lost connection to pod/ });
  await connectionClosed;
  if (log !== undefined) t.match(await logs.end(), log);
  else {
    const { length } = logs.output;
    await until("more lines of the same log", () => logs.output.length > length + 100);
    await logs.kill();
  }

  if (leavesCommands !== true) {
    await until("the processes of exec have ended", () => findProcesses(mark).length === 0, TIMEOUT);
  }
  const again = await until(
    "the next command",
    async () => {
      const { code, stdout } = await kubectl(node, ["exec", "p", "-c", "server", "--", "echo", "again"]);
      return code === 0 ? stdout : undefined;
    },
    TIMEOUT,
  );
  t.equal(again, "again\n");
  for (const [index, pid] of [agent, server].entries()) {
    if (pid !== [node.pid, node.serverPid][index]) continue;
    await until(
      () => `${countHandles(pid)} handles to become the ${before[index]} of before`,
      () => countHandles(pid) <= before[index]! + HANDLES_MORE_MAX,
      TIMEOUT,
    );
  }
}

function countHandles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function findProcesses(text: string): readonly number[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      const isOne = /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").includes(text);
      return isOne ? [Number(name)] : [];
    } catch {
      // It has ended.
      return [];
    }
  });
}
