/** A node for recorded pods: containerd, an API server, and an agent that can be killed and restarted. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { writeKubeconfig } from "../../../client/kubeconfig/kubeconfig.ts";
import { type PrivateContainerd, startPrivateContainerd } from "../../../testing/agent/private-containerd.ts";
import { freePort } from "../../../testing/std/free-port.ts";
import { LoggedProcess } from "../../../testing/std/logged-process.ts";
import { until } from "../../../testing/std/until.ts";
import { programs } from "../cluster.ts";
import { recordedImages } from "./images.ts";
import { RawApiClient } from "./raw-api-client.ts";
import { configurationOf } from "./settings.ts";

const run = promisify(execFile);
const TOKEN = "recorded-agent";
const LOG_CHARACTERS_MAX = 4096;
export const NODE = "recorded";

export class ReplayNode implements AsyncDisposable {
  readonly directory: string;
  readonly podLogs: string;
  readonly rootDir: string;
  readonly manifests: string;
  /** A scratch directory of cases: with a directory `dir` and a file `file`. */
  readonly scratch: string;
  readonly ip = ownAddress();
  readonly api: RawApiClient;
  readonly containerd: PrivateContainerd;
  #agent: LoggedProcess | undefined;
  #execs = 0;
  #owned = new AsyncDisposableStack();

  private constructor(containerd: PrivateContainerd, api: RawApiClient) {
    this.containerd = containerd;
    this.directory = containerd.directory;
    this.rootDir = join(this.directory, "agent");
    this.podLogs = join(this.directory, "logs");
    this.manifests = join(this.directory, "manifests");
    this.scratch = join(this.directory, "scratch");
    this.api = api;
  }

  /** `front` returns the endpoint that the agent uses instead of containerd's. */
  static async create(
    kind: string,
    front: (containerd: PrivateContainerd) => Promise<string> = async ({ endpoint }) => endpoint,
  ): Promise<ReplayNode> {
    await using stack = new AsyncDisposableStack();
    const containerd = stack.use(await startPrivateContainerd());
    const endpoint = await front(containerd);
    await importImages(containerd);
    const { directory } = containerd;
    const port = await freePort();
    writeFileSync(join(directory, "tokens"), `${TOKEN},admin,admin,"system:masters"\n`, { mode: 0o600 });
    const server = start(directory, "apiserver", [
      "--kvstore-servers=memory://",
      "--bind-address=127.0.0.1",
      `--secure-port=${port}`,
      `--cert-dir=${join(directory, "pki")}`,
      `--token-auth-file=${join(directory, "tokens")}`,
      "--authorization-mode=AlwaysAllow",
      "--allow-privileged",
      "--service-cluster-ip-range=10.96.0.0/16",
      "--embedded-controllers=*",
    ]);
    stack.defer(async () => void (await server.stop("SIGTERM")));
    await until("the API server", async () => {
      if (!server.isRunning) throw new Error(`The API server ended:\n${server.log.slice(-LOG_CHARACTERS_MAX)}`);
      return (await listens(port)) ? true : undefined;
    });
    const address = `https://127.0.0.1:${port}`;
    const ca = readFileSync(join(directory, "pki/apiserver.crt"), "utf8");
    await writeKubeconfig(join(directory, "svcconfig"), { server: address, cluster: "c", user: "u", ca, token: TOKEN });
    const api = stack.use(new RawApiClient(address, ca, TOKEN));
    const replayNode = new ReplayNode(containerd, api);
    stack.defer(() => replayNode.killAgent("SIGTERM"));
    replayNode.#prepare(kind, endpoint);
    await replayNode.startAgent();
    replayNode.#owned = stack.move();
    return replayNode;
  }

  #prepare(kind: string, containerRuntimeEndpoint: string): void {
    for (const path of [this.podLogs, this.manifests, join(this.scratch, "dir")]) mkdirSync(path, { recursive: true });
    writeFileSync(join(this.scratch, "file"), "file-content\n");
    const resolv = join(this.directory, "resolv.conf");
    const more = kind === "cfg-a-" ? "" : "search node.example\noptions ndots:2 timeout:1\n";
    writeFileSync(resolv, `nameserver 203.0.113.53\n${more}`);
    const configuration = {
      apiVersion: "svclet.config.svc.io/v1beta1",
      kind: "SvcletConfiguration",
      clusterDNS: ["10.96.0.10"],
      clusterDomain: "cluster.local",
      resolvConf: resolv,
      podLogsDir: this.podLogs,
      staticPodPath: this.manifests,
      containerRuntimeEndpoint,
      failCgroupV1: false,
      failSwapOn: false,
      // Leaves the kernel parameters unchanged.
      makeIPTablesUtilChains: false,
      enableServer: false,
      healthzPort: 0,
      authorization: { mode: "AlwaysAllow" },
      ...configurationOf(kind),
    };
    writeFileSync(join(this.directory, "agent.json"), JSON.stringify(configuration));
  }

  async startAgent(): Promise<void> {
    const agent = start(this.directory, "agent", [
      `--svcconfig=${join(this.directory, "svcconfig")}`,
      `--config=${join(this.directory, "agent.json")}`,
      `--root-dir=${this.rootDir}`,
      `--cert-dir=${join(this.directory, "agent-pki")}`,
      `--hostname-override=${NODE}`,
      `--node-ip=${this.ip}`,
    ]);
    this.#agent = agent;
    await until("the node", async () => {
      if (!agent.isRunning) throw new Error(`The agent ended:\n${agent.log.slice(-LOG_CHARACTERS_MAX)}`);
      const { body } = await this.api.send("GET", `/api/v1/nodes/${NODE}`);
      return isReady(body) ? true : undefined;
    });
  }

  async killAgent(signal: NodeJS.Signals): Promise<void> {
    await this.#agent?.stop(signal);
    this.#agent = undefined;
  }

  /** Kills all processes of a container. */
  async killContainer(id: string): Promise<void> {
    const { socket } = this.containerd;
    await run("ctr", ["--address", socket, "-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", id]);
  }

  /** Runs a command in a container, with its environment and user. */
  async exec(id: string, command: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
    const { socket } = this.containerd;
    const name = `exec-${++this.#execs}`;
    const task = ["--address", socket, "-n", "k8s.io", "tasks", "exec", "--exec-id", name, id];
    return await run("ctr", [...task, ...command]).then(
      ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
      ({ code, stdout, stderr }) => ({ code: Number(code), output: `${stdout}${stderr}` }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }
}

async function importImages({ directory, socket }: PrivateContainerd): Promise<void> {
  for (const [i, archive] of recordedImages().entries()) {
    const file = join(directory, `image-${i}.tar`);
    writeFileSync(file, archive);
    await run("ctr", ["--address", socket, "-n", "k8s.io", "images", "import", file]);
  }
}

function start(directory: string, program: "apiserver" | "agent", flags: readonly string[]): LoggedProcess {
  const logFile = join(directory, `${program}.log`);
  return new LoggedProcess([...programs.sources, program, ...flags], { logFile, cwd: directory });
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

function isReady(node: unknown): boolean {
  const { status } = node as {
    readonly status?: { readonly conditions?: readonly { type: string; status: string }[] };
  };
  return status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") ?? false;
}

/** An address of this host other than loopback, which pods can reach. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "192.0.2.1";
}
