/** Runs an agent as a process over a private containerd. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import type { PrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { removeCgroups } from "../../testing/agent/remove-cgroups.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { LoggedProcess } from "../../testing/std/logged-process.ts";
import { until } from "../../testing/std/until.ts";
import { command, root } from "./cluster.ts";

const TOKEN = "agent-process";

export interface AgentProcessOptions {
  readonly containerd: PrivateContainerd;
  /** A unique name for the agent's directory and the cgroup of its pods. */
  readonly name: string;
  /** The command line of svc before `agent`. */
  readonly program?: readonly string[];
  /** Whether the API server mounts tokens of service accounts into pods. */
  readonly tokens?: boolean;
}

export class AgentProcess implements AsyncDisposable {
  readonly directory: string;
  readonly manifests: string;
  readonly rootDir: string;
  /** Kubeconfigs of the standalone agent and of the API server. */
  readonly standaloneConfig: string;
  readonly adminConfig: string;
  readonly #options: AgentProcessOptions;
  readonly #ports: readonly [agent: number, server: number];
  #agent: LoggedProcess | undefined;
  #server: LoggedProcess | undefined;

  private constructor(options: AgentProcessOptions, ports: readonly [number, number]) {
    this.#options = options;
    this.#ports = ports;
    this.directory = join(options.containerd.directory, options.name);
    this.manifests = join(this.directory, "manifests");
    this.rootDir = join(this.directory, "root");
    this.standaloneConfig = join(this.rootDir, "standalone/svcconfig");
    this.adminConfig = join(this.directory, "admin.svcconfig");
    mkdirSync(this.manifests, { recursive: true });
    const configuration = {
      apiVersion: "svclet.config.svc.io/v1beta1",
      kind: "SvcletConfiguration",
      podLogsDir: join(this.directory, "logs"),
      staticPodPath: this.manifests,
      containerRuntimeEndpoint: options.containerd.endpoint,
      cgroupRoot: this.cgroup,
      failCgroupV1: false,
      failSwapOn: false,
      // Leaves the kernel parameters unchanged.
      makeIPTablesUtilChains: false,
      // The API server connects to the node's address.
      address: "0.0.0.0",
      port: ports[0],
      healthzPort: 0,
      readOnlyPort: 0,
      authentication: { anonymous: { enabled: true } },
      authorization: { mode: "AlwaysAllow" },
    };
    writeFileSync(join(this.directory, "agent.json"), JSON.stringify(configuration));
  }

  static async create(options: AgentProcessOptions): Promise<AgentProcess> {
    return new AgentProcess(options, [await freePort(), await freePort()]);
  }

  get pid(): number {
    return this.#agent?.pid ?? 0;
  }

  get serverPid(): number {
    return this.#server?.pid ?? 0;
  }

  get port(): number {
    return this.#ports[0];
  }

  /** Cgroup of the pods in every hierarchy: `/svc-ctr-1x-n1`. */
  get cgroup(): string {
    return `/${basename(this.#options.containerd.directory)}-${this.#options.name}`;
  }

  get log(): string {
    return readFileSync(join(this.directory, "agent.log"), "utf8");
  }

  /** Starts the agent, `standalone` or with the API server of this directory, which need not run. */
  start(mode: "standalone" | "cluster", ...flags: readonly string[]): void {
    this.#agent = this.#spawn("agent", [
      "--hostname-override=n1",
      `--config=${this.directory}/agent.json`,
      `--root-dir=${this.rootDir}`,
      `--cert-dir=${this.directory}/pki`,
      ...(mode === "cluster" ? [`--svcconfig=${this.adminConfig}`] : []),
      ...flags,
    ]);
  }

  /** Resolves with the exit code, or the name of the signal that ended it. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | string> {
    const code = (await this.#agent?.stop(signal)) ?? 0;
    this.#agent = undefined;
    return code;
  }

  /** Resolves with the exit code of an agent that exits by itself. */
  async ended(): Promise<number | string> {
    return (await this.#agent?.exited) ?? 0;
  }

  /** Starts an API server with a store on disk, which allows all users everything. */
  async startServer(...flags: readonly string[]): Promise<void> {
    const port = this.#ports[1];
    const tokens = join(this.directory, "tokens");
    writeFileSync(tokens, `${TOKEN},admin,admin,"system:masters"\n`, { mode: 0o600 });
    this.#server = this.#spawn("apiserver", [
      `--kvstore-servers=level://${this.directory}/store`,
      "--bind-address=127.0.0.1",
      `--secure-port=${port}`,
      `--cert-dir=${this.directory}/server-pki`,
      `--token-auth-file=${tokens}`,
      "--authorization-mode=AlwaysAllow",
      "--allow-privileged",
      ...(this.#options.tokens === true ? [] : ["--disable-admission-plugins=ServiceAccount"]),
      "--service-cluster-ip-range=10.96.0.0/16",
      "--embedded-controllers=serviceaccount,root-ca-certificate-publisher,node-lifecycle,scheduler",
      // No DNS server resolves the node's name.
      "--svclet-preferred-address-types=InternalIP",
      ...flags,
    ]);
    const server = this.#server;
    await until(
      () => `the API server to listen; its log:\n${server.log}`,
      () => {
        if (!server.isRunning) throw new Error(`Cannot start the API server:\n${server.log}`);
        return server.log.includes("Serving securely");
      },
    );
    const ca = readFileSync(join(this.directory, "server-pki/apiserver.crt"), "utf8");
    const access = { server: `https://127.0.0.1:${port}`, cluster: "c", user: "u", ca, token: TOKEN };
    await writeKubeconfig(this.adminConfig, access);
  }

  async stopServer(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#server?.stop(signal);
    this.#server = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
    await this.stopServer();
    await this.#endPods();
  }

  /** Agents leave their pods running; cgroups can be removed only without processes. */
  async #endPods(): Promise<void> {
    const args = ["-a", this.#options.containerd.socket, "-n", "k8s.io", "tasks"];
    const { stdout } = await command("ctr", [...args, "ls", "-q"]);
    for (const id of stdout.split("\n").filter((each) => each !== "")) await command("ctr", [...args, "rm", "-f", id]);
    await removeCgroups(this.cgroup);
  }

  #spawn(command: "agent" | "apiserver", flags: readonly string[]): LoggedProcess {
    const { program = ["node", join(root, "src/main.ts")] } = this.#options;
    return new LoggedProcess([...program, command, ...flags], { logFile: join(this.directory, `${command}.log`) });
  }
}
