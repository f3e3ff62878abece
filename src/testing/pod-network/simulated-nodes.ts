/**
 * Three nodes with a pod each, all network namespaces; nothing is changed in the namespace of the tests.
 *
 *     pod 10.244.0.2 ─ bridge ─ node a 198.51.100.1 ─┐
 *     pod 10.244.1.2 ─ bridge ─ node b 198.51.100.2 ─┴─ router ─── node c 203.0.113.3 ─ bridge ─ pod 10.244.2.2
 *
 * By IPv6 the nodes are fd00:51::1, fd00:51::2 and fd00:c::3, the pods fd00:244:N::2.
 */
import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { NetworkHost } from "../../pod-network/pod-network.ts";
import { createRouteTools } from "../../pod-network/programs.ts";
import { runProgram } from "../../std/nftables/nft.ts";

export type NodeName = "a" | "b" | "c";
type NetworkNamespace = NodeName | "router" | `pod-${NodeName}`;

export const NODES: readonly NodeName[] = ["a", "b", "c"];
const addresses = { a: "198.51.100.1", b: "198.51.100.2", c: "203.0.113.3" } as const;
const gateways = { a: "198.51.100.254", b: "198.51.100.254", c: "203.0.113.254" } as const;
const addresses6 = { a: "fd00:51::1", b: "fd00:51::2", c: "fd00:c::3" } as const;
const gateways6 = { a: "fd00:51::fe", b: "fd00:51::fe", c: "fd00:c::fe" } as const;
export const ROUTER = gateways.a;
export const ROUTER6 = gateways6.a;

export class SimulatedNodes implements Disposable {
  readonly #name = `svcn${randomBytes(3).toString("hex")}`;
  readonly #bridge: string;

  /** `bridge`: the name of the bridge that connects the pods of a node. */
  constructor(bridge: string) {
    this.#bridge = bridge;
    try {
      this.#build();
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  static address(node: NodeName): string {
    return addresses[node];
  }

  static address6(node: NodeName): string {
    return addresses6[node];
  }

  static podCidr6(node: NodeName): string {
    return `fd00:244:${NODES.indexOf(node)}::/64`;
  }

  static pod6(node: NodeName): string {
    return `fd00:244:${NODES.indexOf(node)}::2`;
  }

  static podCidr(node: NodeName): string {
    return `10.244.${NODES.indexOf(node)}.0/24`;
  }

  static pod(node: NodeName): string {
    return `10.244.${NODES.indexOf(node)}.2`;
  }

  /** Runs a program in the namespace; throws with its stderr. */
  inside(netns: NetworkNamespace, ...words: readonly string[]): string {
    return execFileSync("nsenter", [this.#net(netns), ...words], {
      encoding: "utf8",
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  /** Whether a packet of so many bytes arrives, and its answer. */
  pings(from: NetworkNamespace, address: string, bytes = 56): Promise<boolean> {
    const words = ["timeout", "1", "busybox", "ping", "-c1", "-s", String(bytes), address];
    return new Promise((resolve) => {
      execFile("nsenter", [this.#net(from), ...words], { env }, (error) => resolve(error === null));
    });
  }

  /** Sends so many bytes over TCP; resolves with how many arrive. */
  async transfer(from: NodeName, to: NodeName, bytes: number): Promise<number> {
    const shell = (netns: NetworkNamespace, script: string): Promise<string> =>
      new Promise((resolve) => {
        execFile("nsenter", [this.#net(netns), "timeout", "10", "sh", "-c", script], { env }, (_, stdout) =>
          resolve(stdout),
        );
      });
    const received = shell(`pod-${to}`, "busybox nc -l -p 7000 | wc -c");
    const send = `sleep 0.5; head -c ${bytes} /dev/zero | busybox nc -w 5 ${SimulatedNodes.pod(to)} 7000`;
    await shell(`pod-${from}`, send);
    return Number(await received);
  }

  /** The programs of a node. */
  host(node: NodeName): NetworkHost {
    const enter = ["nsenter", this.#net(node)];
    return {
      tools: createRouteTools([...enter, "/sbin/ip"], [...enter, "/sbin/bridge"]),
      nft: { apply: (text) => runProgram("nsenter", [this.#net(node), "/usr/sbin/nft", "-f", "-"], text) },
      hasIptables: true,
      enableForwarding: async () => {},
    };
  }

  /** Takes the interface of a node down, which removes its routes, and up again. */
  flap(node: NodeName): void {
    this.inside(node, "ip", "link", "set", "eth0", "down");
    this.inside(node, "ip", "link", "set", "eth0", "up");
    this.inside(node, "ip", "route", "replace", "default", "via", gateways[node]);
  }

  [Symbol.dispose](): void {
    for (const netns of ["router", ...NODES, ...NODES.map((node) => `pod-${node}`)]) {
      try {
        execFileSync("ip", ["netns", "delete", `${this.#name}-${netns}`], { stdio: "ignore", env });
      } catch {
        // It was not created.
      }
    }
  }

  #net(netns: NetworkNamespace): string {
    return `--net=/run/netns/${this.#name}-${netns}`;
  }

  #build(): void {
    for (const netns of ["router", ...NODES, ...NODES.map((node) => `pod-${node}` as const)] as const) {
      execFileSync("ip", ["netns", "add", `${this.#name}-${netns}`], { env });
      this.inside(netns, "ip", "link", "set", "lo", "up");
    }
    const ip = (netns: NetworkNamespace, ...words: readonly string[]): string => this.inside(netns, "ip", ...words);
    for (const [bridge, gateway, gateway6] of [
      ["near", gateways.a, gateways6.a],
      ["far", gateways.c, gateways6.c],
    ] as const) {
      ip("router", "link", "add", bridge, "type", "bridge");
      ip("router", "addr", "add", `${gateway}/24`, "dev", bridge);
      ip("router", "addr", "add", `${gateway6}/64`, "dev", bridge, "nodad");
      ip("router", "link", "set", bridge, "up");
    }
    for (const node of NODES) {
      this.#connect("router", `node-${node}`, node);
      ip("router", "link", "set", `node-${node}`, "master", node === "c" ? "far" : "near", "up");
      ip(node, "addr", "add", `${addresses[node]}/24`, "dev", "eth0");
      ip(node, "addr", "add", `${addresses6[node]}/64`, "dev", "eth0", "nodad");
      ip(node, "link", "set", "eth0", "up");
      ip(node, "route", "add", "default", "via", gateways[node]);
      ip(node, "route", "add", "default", "via", gateways6[node]);
      const [gateway, pod] = [SimulatedNodes.pod(node).replace(/2$/, "1"), `pod-${node}` as const];
      ip(node, "link", "add", this.#bridge, "type", "bridge");
      ip(node, "addr", "add", `${gateway}/24`, "dev", this.#bridge);
      ip(node, "addr", "add", `${SimulatedNodes.pod6(node).replace(/2$/, "1")}/64`, "dev", this.#bridge, "nodad");
      ip(node, "link", "set", this.#bridge, "up");
      this.#connect(node, "veth0", pod);
      ip(node, "link", "set", "veth0", "master", this.#bridge, "up");
      ip(pod, "addr", "add", `${SimulatedNodes.pod(node)}/24`, "dev", "eth0");
      ip(pod, "addr", "add", `${SimulatedNodes.pod6(node)}/64`, "dev", "eth0", "nodad");
      ip(pod, "link", "set", "eth0", "up");
      ip(pod, "route", "add", "default", "via", gateway);
      ip(pod, "route", "add", "default", "via", SimulatedNodes.pod6(node).replace(/2$/, "1"));
    }
    for (const netns of ["router", ...NODES] as const)
      this.inside(netns, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1");
  }

  #connect(netns: NetworkNamespace, name: string, peer: NetworkNamespace): void {
    const words = ["link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", `${this.#name}-${peer}`];
    this.inside(netns, "ip", ...words);
  }
}

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin`, NODE_OPTIONS: "" };
