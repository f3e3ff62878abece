/** Simulated machines: a network namespace each, on one bridge, with its own containerd and agent. */
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { nameSuffix } from "../../pod-network/network-names.ts";
import { type PrivateContainerd, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { removeCgroups } from "../../testing/agent/remove-cgroups.ts";
import { LoggedProcess } from "../../testing/std/logged-process.ts";
import { type CommandResult, command, root, type TestCluster } from "./cluster.ts";

/** Runs `ip`; throws an error with its stderr. */
async function ip(...words: readonly string[]): Promise<void> {
  const { code, stderr } = await command("ip", words);
  if (code !== 0) throw new Error(`ip ${words.join(" ")}: ${stderr.trim()}`);
}

/** A bridge of this host, the gateway of the machines. */
export class Network implements AsyncDisposable {
  readonly name = `svcj${randomBytes(3).toString("hex")}`;
  readonly #prefix = `10.${60 + (randomBytes(1)[0]! % 30)}.${randomBytes(1)[0]!}`;

  static async create(): Promise<Network> {
    const network = new Network();
    await ip("link", "add", network.name, "type", "bridge");
    await ip("addr", "add", `${network.gateway}/24`, "dev", network.name);
    await ip("link", "set", network.name, "up");
    return network;
  }

  get gateway(): string {
    return `${this.#prefix}.1`;
  }

  address(host: number): string {
    return `${this.#prefix}.${host}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await command("ip", ["link", "delete", this.name]);
  }
}

export class Machine implements AsyncDisposable {
  readonly name: string;
  readonly #network: Network;
  readonly #namespace: string;
  #containerd: PrivateContainerd | undefined;
  #agent: LoggedProcess | undefined;
  #links = 0;

  private constructor(network: Network, name: string) {
    this.#network = network;
    this.name = name;
    this.#namespace = `${network.name}-${name}`;
  }

  /** Without a network of pods the runtime has no CNI configuration. */
  static async create(network: Network, name: string, host: number, hasPodNetwork = true): Promise<Machine> {
    const machine = new Machine(network, name);
    try {
      await ip("netns", "add", machine.#namespace);
      await machine.#inside("link", "set", "lo", "up");
      await machine.plug(host);
      machine.#containerd = await startPrivateContainerd(machine.#enter, hasPodNetwork);
      return machine;
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Adds an interface with another address and makes it the default route. */
  async plug(host: number): Promise<void> {
    const [near, far] = [`${this.#network.name}${this.name}${this.#links}`, `eth${this.#links}`];
    this.#links++;
    await ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", this.#namespace);
    await ip("link", "set", near, "master", this.#network.name, "up");
    await this.#inside("addr", "add", `${this.#network.address(host)}/24`, "dev", far);
    await this.#inside("link", "set", far, "up");
    await this.#inside("route", "replace", "default", "via", this.#network.gateway, "dev", far);
  }

  /** Takes the interfaces down, as if the machine lost its power; or up again. */
  async setConnected(isConnected: boolean): Promise<void> {
    for (let link = 0; link < this.#links; link++) {
      await ip("link", "set", `${this.#network.name}${this.name}${link}`, isConnected ? "up" : "down");
    }
  }

  /** The file of the network namespace. */
  get netns(): string {
    return `/run/netns/${this.#namespace}`;
  }

  /** Drops what begins a connection from outside, as NAT does. */
  async refuseConnections(): Promise<void> {
    const rule = ["-A", "INPUT", "!", "-i", "lo", "-p", "tcp", "--syn", "-j", "DROP"];
    const [program = "", ...args] = [...this.#enter, "iptables", ...rule];
    const { code, stderr } = await command(program, args);
    if (code !== 0) throw new Error(`iptables: ${stderr}`);
  }

  /** Runs a program in the machine's network. */
  run(...words: readonly string[]): Promise<CommandResult> {
    const [program = "", ...args] = [...this.#enter, ...words];
    return command(program, args);
  }

  get image(): string {
    return this.#containerd?.image ?? "";
  }

  get pid(): number | undefined {
    return this.#agent?.pid;
  }

  get directory(): string {
    return this.#containerd?.directory ?? "";
  }

  /** The agent's certificate and key for a use in PEM; empty before it has one. */
  certificate(use: "client" | "server"): string {
    try {
      return readFileSync(join(this.directory, `pki/svclet-${use}-current.pem`), "utf8");
    } catch {
      return "";
    }
  }

  log(): string {
    return readFileSync(join(this.directory, "agent.log"), "utf8");
  }

  /** Runs a command line that begins with `svc agent`, with flags for the machine's directories. */
  startAgent(line: string): void {
    const { directory } = this;
    const configuration = {
      apiVersion: "svclet.config.svc.io/v1beta1",
      kind: "SvcletConfiguration",
      podLogsDir: join(directory, "logs"),
      containerRuntimeEndpoint: this.#containerd?.endpoint,
      cgroupRoot: `/${basename(directory)}`,
      failCgroupV1: false,
      failSwapOn: false,
    };
    writeFileSync(join(directory, "agent.json"), JSON.stringify(configuration));
    const words = [
      ...this.#enter,
      "node",
      join(root, "src/main.ts"),
      ...line.trim().split(" ").slice(1),
      `--hostname-override=${this.name}`,
      `--config=${directory}/agent.json`,
      `--root-dir=${directory}/agent`,
      `--cert-dir=${directory}/pki`,
    ];
    this.#agent = new LoggedProcess(words, { logFile: join(directory, "agent.log") });
  }

  /** The finding of `svc agent doctor` about the tunnel of an agent with `--tunnel`. */
  async diagnoseTunnel(): Promise<unknown> {
    const { directory } = this;
    const [program = "", ...args] = [...this.#enter, "node", join(root, "src/main.ts"), "agent", "doctor", "--tunnel"];
    const flags = [`--config=${directory}/agent.json`, `--root-dir=${directory}/agent`, `--cert-dir=${directory}/pki`];
    const access = [`--svcconfig=${directory}/agent/svcconfig`, `--hostname-override=${this.name}`];
    const { stdout } = await command(program, [...args, ...flags, ...access, "--output=json"]);
    const { findings } = JSON.parse(stdout) as { readonly findings: readonly { readonly id: string }[] };
    return findings.find(({ id }) => id === "api-server-tunnel") ?? findings.filter(({ id }) => id.startsWith("api-"));
  }

  async killAgent(): Promise<void> {
    await this.#agent?.stop("SIGKILL");
    this.#agent = undefined;
  }

  async stopAgent(): Promise<void> {
    await this.#agent?.stop("SIGTERM");
    this.#agent = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopAgent();
    const cgroup = basename(this.directory);
    await this.#containerd?.[Symbol.asyncDispose]();
    await command("ip", ["netns", "delete", this.#namespace]);
    if (cgroup === "") return;
    await removeCgroups(cgroup);
    rmSync(`/run/svc-agent-${nameSuffix(join(this.directory, "agent"), "")}`, { recursive: true, force: true });
  }

  /** Only the network is separate: cgroups and files are those of this host. */
  get #enter(): readonly string[] {
    return ["nsenter", `--net=/run/netns/${this.#namespace}`];
  }

  async #inside(...words: readonly string[]): Promise<void> {
    await ip("-n", this.#namespace, ...words);
  }
}

/** The command to run on a machine; `host` is the address of the API server. */
export async function createJoinCommand(
  cluster: TestCluster,
  network: Network,
  host = network.gateway,
): Promise<string> {
  const server = `--server=https://${host}:${cluster.port}`;
  const words = ["token", "create", `--svcconfig=${cluster.kubeconfig}`, server, "--ttl=10m"];
  const { code, stdout, stderr } = await command("node", [join(root, "src/main.ts"), ...words]);
  if (code !== 0) throw new Error(stderr);
  return stdout.trim();
}
