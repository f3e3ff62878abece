/**
 * A cluster whose parts are network namespaces on this host, which is the router between two networks:
 *
 *     control plane .2 ─┐
 *     node n1 .11 ──────┤
 *     node n2 .12 ──────┼─ near ─── this host ─── far ─── node n3 .13
 *     client .50 ───────┘
 */
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { PeerProcess } from "../../testing/proxy/peer-process.ts";
import { until } from "../../testing/std/until.ts";
import { type CommandResult, command, programs, root, TestCluster } from "./cluster.ts";
import { Machine, Network } from "./machine.ts";

export const NODE_NAMES = ["n1", "n2", "n3"] as const;
export type NodeName = (typeof NODE_NAMES)[number];

/** An address that the client has a route to by n1. */
export const EXTERNAL_IP = "203.0.113.50";

const HOSTS = { n1: 11, n2: 12, n3: 13 } as const;
const CONTROL_PLANE = 2;
const CLIENT = 50;

export class NodeNetwork implements AsyncDisposable {
  readonly cluster: TestCluster;
  readonly nodes: Readonly<Record<NodeName, Machine>>;
  readonly near: Network;
  readonly far: Network;
  readonly #stack: AsyncDisposableStack;
  readonly #controlPlane: string;
  readonly #joinCommand: string;
  readonly #peers = new Map<string, PeerProcess>();

  private constructor(
    parts: Pick<NodeNetwork, "cluster" | "nodes" | "near" | "far">,
    controlPlane: string,
    joinCommand: string,
    stack: AsyncDisposableStack,
  ) {
    this.cluster = parts.cluster;
    this.nodes = parts.nodes;
    this.near = parts.near;
    this.far = parts.far;
    this.#controlPlane = controlPlane;
    this.#joinCommand = joinCommand;
    this.#stack = stack;
  }

  /** Resolves when all nodes are ready. */
  static async create(): Promise<NodeNetwork> {
    await using stack = new AsyncDisposableStack();
    const [near, far] = [stack.use(await Network.create()), stack.use(await Network.create())];
    const controlPlane = await addNamespace(near, "cp", CONTROL_PLANE, stack);
    const images = await mkdtemp(join(tmpdir(), "svc-images-"));
    stack.defer(() => rm(images, { recursive: true, force: true }));
    const program = ["nsenter", `--net=${controlPlane}`, ...programs.sources];
    const flags = ["--bind-address=0.0.0.0"];
    const cluster = stack.use(await TestCluster.create({ program, flags, imageDir: images }));
    await cluster.start();
    const url = `https://${near.address(CONTROL_PLANE)}:${cluster.port}`;
    const token = ["token", "create", `--svcconfig=${cluster.kubeconfig}`, `--server=${url}`, "--ttl=1h"];
    const words = [`--net=${controlPlane}`, "node", join(root, "src/main.ts"), ...token];
    const { stdout: line, stderr } = await command("nsenter", words);
    if (!line.includes("--pod-network=auto")) throw new Error(`The join command has no pod network: ${line}${stderr}`);
    const create = async (name: NodeName): Promise<Machine> => {
      const machine = stack.use(await Machine.create(name === "n3" ? far : near, name, HOSTS[name], false));
      machine.startAgent(line);
      return machine;
    };
    const nodes = { n1: await create("n1"), n2: await create("n2"), n3: await create("n3") };
    const network = new NodeNetwork({ cluster, nodes, near, far }, controlPlane, line, stack.move());
    try {
      const client = await addNamespace(near, "cl", CLIENT, network.#stack);
      await run("nsenter", `--net=${client}`, "ip", "route", "add", EXTERNAL_IP, "via", network.address("n1"));
      network.#addPeer("client", client);
      for (const name of NODE_NAMES) network.#addPeer(name, nodes[name].netns);
      await network.untilReady();
      return network;
    } catch (error) {
      const logs = NODE_NAMES.map((name) => `${name}:\n${nodes[name].log()}`).join("\n");
      await network[Symbol.asyncDispose]();
      throw new Error(`The nodes do not join:\n${logs}`, { cause: error });
    }
  }

  address(node: NodeName): string {
    return (node === "n3" ? this.far : this.near).address(HOSTS[node]);
  }

  async kubectl(args: readonly string[], input?: string): Promise<CommandResult> {
    const words = [`--net=${this.#controlPlane}`, kubectlPaths()[0] ?? "kubectl", ...args];
    return await this.cluster.kubectl(words, { binary: "nsenter", ...(input === undefined ? {} : { input }) });
  }

  async apply(...items: readonly object[]): Promise<void> {
    const { code, stderr } = await this.kubectl(
      ["apply", "-f", "-"],
      JSON.stringify({ apiVersion: "v1", kind: "List", items }),
    );
    if (code !== 0) throw new Error(stderr);
  }

  /** The value of a JSONPath expression. */
  async get(what: string, path: string): Promise<string> {
    return (await this.kubectl(["get", ...what.split(" "), `-o=jsonpath=${path}`])).stdout;
  }

  async untilReady(nodes: readonly NodeName[] = NODE_NAMES): Promise<void> {
    const path = '{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}';
    await until("the nodes are ready", async () => {
      const ready = await this.get("nodes", path);
      return nodes.every((name) => ready.includes(`${name}=True `));
    });
  }

  startAgent(node: NodeName): void {
    this.nodes[node].startAgent(this.#joinCommand);
  }

  /**
   * Creates a pod on the node, and a process in its network that answers at port 8080 with the pod's name. Resolves
   * with its address.
   */
  async serve(name: string, node: NodeName, labels: object, ports: readonly object[] = []): Promise<string> {
    const mark = String(1_000_000 + Math.floor(Math.random() * 8_000_000));
    const container = { name: "c", image: "localhost/bb:1", imagePullPolicy: "Never", command: ["sleep", mark], ports };
    await this.apply({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, labels },
      // The pod of a node that does not answer stays.
      spec: {
        nodeName: node,
        containers: [container],
        terminationGracePeriodSeconds: 0,
        tolerations: [{ operator: "Exists" }],
      },
    });
    const pid = await until(`${name} runs`, () => findProcess(`sleep ${mark}`));
    const peer = this.#addPeer(name, `/proc/${pid}/ns/net`);
    await peer.run({ serve: { name, port: 8080 } });
    return await until(
      `the address of ${name}`,
      async () => (await this.get(`pod ${name}`, "{.status.podIP}")) || undefined,
    );
  }

  /** The name of the pod that answers, or why none does. `from`: a pod, a node or `client`. */
  async open(from: string, protocol: "tcp" | "udp", address: string, port: number): Promise<string> {
    const answer = await this.#peers.get(from)?.run({ open: { protocol, address, port } });
    return answer?.split(" ")[0] ?? "";
  }

  /** The addresses of a name, by the DNS server, from a pod. */
  async lookUp(pod: string, name: string, server: string): Promise<readonly string[]> {
    const namespace = this.#peers.get(pod)?.namespace ?? "";
    const words = [`--net=${namespace}`, "timeout", "5", "busybox", "nslookup", "-type=a", name, server];
    const { stdout } = await command("nsenter", words);
    return [...stdout.matchAll(/^Name:.*\nAddress: (\S+)$/gm)].map(([, address = ""]) => address).sort();
  }

  /** Runs `ip` on a node. */
  async ip(node: NodeName, ...words: readonly string[]): Promise<string> {
    return (await this.nodes[node].run("ip", ...words)).stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#peers.values()].map((peer) => peer.close()));
    await this.#stack.disposeAsync();
  }

  #addPeer(name: string, namespace: string): PeerProcess {
    const peer = new PeerProcess(namespace);
    this.#peers.set(name, peer);
    return peer;
  }
}

async function run(program: string, ...words: readonly string[]): Promise<void> {
  const { code, stderr } = await command(program, words);
  if (code !== 0) throw new Error(`${program} ${words.join(" ")}: ${stderr.trim()}`);
}

/** A network namespace with an address in the network; resolves with its file. */
async function addNamespace(
  network: Network,
  name: string,
  host: number,
  stack: AsyncDisposableStack,
): Promise<string> {
  const namespace = `${network.name}-${name}`;
  await run("ip", "netns", "add", namespace);
  stack.defer(async () => {
    await command("ip", ["netns", "delete", namespace]);
  });
  const near = `${network.name}${name}`;
  await run("ip", "link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", namespace);
  await run("ip", "link", "set", near, "master", network.name, "up");
  const inside = async (...words: readonly string[]): Promise<void> => await run("ip", "-n", namespace, ...words);
  await inside("link", "set", "lo", "up");
  await inside("addr", "add", `${network.address(host)}/24`, "dev", "eth0");
  await inside("link", "set", "eth0", "up");
  await inside("route", "add", "default", "via", network.gateway);
  return `/run/netns/${namespace}`;
}

/** The ID of the process with the command line. */
function findProcess(line: string): string | undefined {
  return readdirSync("/proc").find((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim() === line;
    } catch {
      return false;
    }
  });
}
