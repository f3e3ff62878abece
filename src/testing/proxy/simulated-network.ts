/**
 * A node with three pods on a bridge and a host outside, each a network namespace with a process that serves and opens
 * connections. Nothing is changed in the namespace of the tests.
 *
 *     pod1 10.1.0.11 ─┬─ bridge 10.1.0.1 ─ node 198.51.100.1 ─── outside 198.51.100.2
 *     pod2 10.1.0.12 ─┤
 *     pod3 10.1.0.13 ─┘
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { PeerProcess } from "./peer-process.ts";

const PODS = ["pod1", "pod2", "pod3"] as const;
export type NetworkNamespace = "node" | (typeof PODS)[number] | "outside";
const NAMESPACES: readonly NetworkNamespace[] = ["node", ...PODS, "outside"];

export const addresses = {
  node: "198.51.100.1",
  node6: "fd00:100::1",
  outside: "198.51.100.2",
  bridge: "10.1.0.1",
  pod1: "10.1.0.11",
  pod2: "10.1.0.12",
  pod3: "10.1.0.13",
  pod1Six: "fd00:1::11",
  pod2Six: "fd00:1::12",
  pod3Six: "fd00:1::13",
} as const;

/** The reason why the network cannot be made; undefined if it can. */
export function findNetworkProblem(): string | undefined {
  if (process.getuid?.() !== 0) return "this user is not root";
  for (const program of ["ip", "nsenter", "nft"]) {
    try {
      execFileSync("sh", ["-c", `PATH=$PATH:/usr/sbin:/sbin command -v ${program}`]);
    } catch {
      return `${program} is not installed`;
    }
  }
  return undefined;
}

export class SimulatedNetwork implements AsyncDisposable {
  readonly #name = `svcp${randomBytes(3).toString("hex")}`;
  readonly #peers = new Map<NetworkNamespace, PeerProcess>();

  static async create(): Promise<SimulatedNetwork> {
    const network = new SimulatedNetwork();
    try {
      await network.#build();
      return network;
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
  }

  namespace(netns: NetworkNamespace): string {
    return `${this.#name}-${netns}`;
  }

  /** Runs a program in the namespace; throws with its stderr. */
  inside(netns: NetworkNamespace, program: string, ...args: readonly string[]): string {
    const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
    const words = [`--net=/run/netns/${this.namespace(netns)}`, program, ...args];
    return execFileSync("nsenter", words, { encoding: "utf8", env, stdio: ["ignore", "pipe", "pipe"] });
  }

  /** What a server answers to a connection from the netns, or an error's code. */
  async open(
    from: NetworkNamespace,
    protocol: "tcp" | "udp",
    address: string,
    port: number,
    { localPort, timeoutMs }: { readonly localPort?: number; readonly timeoutMs?: number } = {},
  ): Promise<string> {
    const open = {
      protocol,
      address,
      port,
      ...(localPort === undefined ? {} : { from: localPort }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
    return (await this.#peers.get(from)?.run({ open })) ?? "";
  }

  async serve(netns: NetworkNamespace, port: number): Promise<void> {
    await this.#peers.get(netns)?.run({ serve: { name: netns, port } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const peer of this.#peers.values()) await peer.close();
    for (const netns of NAMESPACES) {
      try {
        execFileSync("ip", ["netns", "delete", this.namespace(netns)], { stdio: "ignore" });
      } catch {
        // It was not created.
      }
    }
  }

  async #build(): Promise<void> {
    for (const netns of NAMESPACES) {
      execFileSync("ip", ["netns", "add", this.namespace(netns)]);
      this.inside(netns, "ip", "link", "set", "lo", "up");
    }
    const ip = (netns: NetworkNamespace, ...words: readonly string[]): string => this.inside(netns, "ip", ...words);
    ip("node", "link", "add", "br0", "type", "bridge");
    ip("node", "addr", "add", `${addresses.bridge}/24`, "dev", "br0");
    ip("node", "addr", "add", "fd00:1::1/64", "dev", "br0", "nodad");
    ip("node", "link", "set", "br0", "up");
    for (const pod of PODS) {
      this.#link(pod, pod);
      ip("node", "link", "set", pod, "master", "br0", "up");
      ip("node", "link", "set", pod, "type", "bridge_slave", "hairpin", "on");
      this.#addresses(pod, addresses[pod], addresses[`${pod}Six`], addresses.bridge, "fd00:1::1");
    }
    this.#link("outside", "out0");
    ip("node", "addr", "add", `${addresses.node}/24`, "dev", "out0");
    ip("node", "addr", "add", `${addresses.node6}/64`, "dev", "out0", "nodad");
    ip("node", "link", "set", "out0", "up");
    this.#addresses("outside", addresses.outside, "fd00:100::2", addresses.node, addresses.node6);
    ip("node", "route", "add", "default", "via", addresses.outside);
    ip("node", "route", "add", "default", "via", "fd00:100::2");
    const settings = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];
    for (const setting of [...settings, "net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"]) {
      this.inside("node", "sysctl", "-q", "-w", `${setting}=1`);
    }
    for (const netns of NAMESPACES) this.#peers.set(netns, new PeerProcess(`/run/netns/${this.namespace(netns)}`));
    for (const pod of PODS) await this.serve(pod, 8080);
    await this.serve("outside", 9999);
  }

  #link(netns: NetworkNamespace, near: string): void {
    const words = ["link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", this.namespace(netns)];
    this.inside("node", "ip", ...words);
  }

  #addresses(netns: NetworkNamespace, four: string, six: string, gateway: string, gateway6: string): void {
    const ip = (...words: readonly string[]): string => this.inside(netns, "ip", ...words);
    ip("addr", "add", `${four}/24`, "dev", "eth0");
    ip("addr", "add", `${six}/64`, "dev", "eth0", "nodad");
    ip("link", "set", "eth0", "up");
    ip("route", "add", "default", "via", gateway);
    ip("route", "add", "default", "via", gateway6);
  }
}
