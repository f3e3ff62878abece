/** Real packets through the kernel's tables, in network namespaces of their own. */
import t from "tap";
import type { Service, ServiceSpec } from "../api/core/service/schema.ts";
import { runProgram } from "../std/nftables/nft.ts";
import { removeTable } from "../std/nftables/table.ts";
import { findSystemProgram } from "../std/process/system-programs.ts";
import { proxyService, proxySlice } from "../testing/proxy/objects.ts";
import {
  addresses,
  findNetworkProblem,
  type NetworkNamespace,
  SimulatedNetwork,
} from "../testing/proxy/simulated-network.ts";
import { deleteStaleFlows, findChangedTargets, findStaleFlow } from "./conntrack.ts";
import { readSlice } from "./endpoints.ts";
import { computeFrontends, type ServiceFrontends } from "./frontends.ts";
import { parseAffinityClients } from "./nftables/affinity-clients.ts";
import { ServiceTable } from "./nftables/service-table.ts";

const problem = findNetworkProblem();
const skip = problem === undefined ? false : `cannot make network namespaces: ${problem}`;
const { node, outside, bridge, pod1, pod2 } = addresses;
const IP = "10.96.0.5";
const context = { name: "n1", zone: undefined, addresses: [node, addresses.node6] };
const both = [`${pod1} node=n1`, `${pod2} node=n1`];

class NodeTables {
  readonly network: SimulatedNetwork;
  readonly #tables = {
    IPv4: new ServiceTable({
      family: "IPv4",
      table: "t",
      clusterCidrs: ["10.1.0.0/16"],
      serviceCidrs: ["10.96.0.0/16"],
    }),
    IPv6: new ServiceTable({
      family: "IPv6",
      table: "t",
      clusterCidrs: ["fd00:1::/64"],
      serviceCidrs: ["fd00:96::/112"],
    }),
  };

  constructor(network: SimulatedNetwork) {
    this.network = network;
  }

  async apply(text: string): Promise<void> {
    const [net, nft] = [
      `--net=/run/netns/${this.network.namespace("node")}`,
      (await findSystemProgram("nft")) ?? "nft",
    ];
    await runProgram("nsenter", [net, nft, "-f", "-"], text);
  }

  async reset(): Promise<void> {
    for (const family of ["IPv4", "IPv6"] as const) await this.apply(this.#tables[family].rebuild());
  }

  /** As a proxy that restarts does. */
  async replace(): Promise<void> {
    const listed = this.network.inside("node", "nft", "-j", "list", "sets", "ip");
    await this.apply(this.#tables.IPv4.rebuild(parseAffinityClients(listed, "t")));
  }

  /** Replaces the service by one with the endpoints. */
  async set(
    service: Service,
    endpoints: readonly string[],
    protocol: "TCP" | "UDP" = "TCP",
  ): Promise<ServiceFrontends> {
    const slice = readSlice(proxySlice("web", endpoints, { protocol }));
    const family = service.spec?.clusterIP?.includes(":") ? "IPv6" : "IPv4";
    const frontends = computeFrontends(service, slice === undefined ? [] : [slice], family, context);
    await this.apply(this.#tables[family].update(new Map([["web", frontends]])).text());
    return frontends;
  }

  async remove(): Promise<void> {
    for (const family of ["IPv4", "IPv6"] as const) {
      await this.apply(this.#tables[family].update(new Map([["web", undefined]])).text());
    }
  }

  tcp(from: NetworkNamespace, address: string, port = 80): Promise<string> {
    return this.network.open(from, "tcp", address, port);
  }

  /** The different answers to several connections, sorted. */
  async all(from: NetworkNamespace, address: string, port = 80, count = 24): Promise<readonly string[]> {
    const answers = new Set<string>();
    for (let i = 0; i < count; i++) answers.add(await this.tcp(from, address, port));
    return [...answers].sort();
  }
}

const web = (spec: ServiceSpec = {}, ingress: readonly string[] = []): Service =>
  proxyService("web", { clusterIP: IP, ...spec }, ingress);

t.test("packets to services", { skip, timeout: 120_000 }, async (t) => {
  await using network = await SimulatedNetwork.create();
  const proxy = new NodeTables(network);
  await proxy.reset();
  t.afterEach(() => proxy.remove());

  await t.test("a cluster IP leads pods and the node to all endpoints, pods with their own address", async (t) => {
    await proxy.set(web(), both);
    t.same(await proxy.all("pod1", IP), [`pod1 ${bridge}`, `pod2 ${pod1}`], "a pod reaches itself through the service");
    t.same(await proxy.all("node", IP), [`pod1 ${bridge}`, `pod2 ${bridge}`]);
    t.same(await proxy.all("outside", IP), [`pod1 ${bridge}`, `pod2 ${bridge}`], "the node's address is the source");
  });

  await t.test(
    "packets to a service without endpoints are refused, also to other ports and unused addresses",
    async (t) => {
      await proxy.set(web(), []);
      for (const netns of ["pod1", "node"] as const) {
        t.equal(await proxy.tcp(netns, IP), "ECONNREFUSED", `no endpoints, from ${netns}`);
        t.equal(await proxy.tcp(netns, "10.96.7.7"), "ECONNREFUSED", `no service, from ${netns}`);
        t.equal(await network.open(netns, "udp", IP, 80), "ECONNREFUSED", `another protocol, from ${netns}`);
      }
      await proxy.set(web(), both);
      t.equal(await proxy.tcp("pod1", IP, 81), "ECONNREFUSED", "another port");
    },
  );

  await t.test("packets to the service's range that arrive for the node itself are not refused", async (t) => {
    network.inside("node", "ip", "addr", "add", "10.96.0.10/32", "dev", "lo");
    await network.serve("node", 5353);
    t.equal(await proxy.tcp("pod1", "10.96.0.10", 5353), `node ${pod1}`);
    t.equal(await proxy.tcp("node", "10.96.0.10", 5353), "node 10.96.0.10");
  });

  await t.test("a node port leads to all endpoints from the node's address", async (t) => {
    await proxy.set(web({ type: "NodePort", ports: [{ port: 80, protocol: "TCP", nodePort: 30080 }] }), both);
    for (const netns of ["outside", "node", "pod1"] as const) {
      t.same(await proxy.all(netns, node, 30080), [`pod1 ${bridge}`, `pod2 ${bridge}`], netns);
    }
    t.equal(await proxy.tcp("outside", node, 30081), "ECONNREFUSED");
    await proxy.set(web({ type: "NodePort", ports: [{ port: 80, protocol: "TCP", nodePort: 30080 }] }), []);
    t.equal(await proxy.tcp("outside", node, 30080), "ECONNREFUSED", "without endpoints");
  });

  await t.test("external traffic with policy Local keeps the client's address", async (t) => {
    const spec = { type: "LoadBalancer", externalTrafficPolicy: "Local" } as const;
    await proxy.set(web(spec, [node]), [`${pod1} node=n1`, `${pod2} node=n2`]);
    t.same(await proxy.all("outside", node), [`pod1 ${outside}`], "only to endpoints of the node");
    t.same(await proxy.all("node", node), [`pod1 ${bridge}`, `pod2 ${bridge}`], "the node itself uses all");
    t.same(await proxy.all("pod1", node), [`pod1 ${bridge}`, `pod2 ${pod1}`], "pods use all");
    await proxy.set(web(spec, [node]), [`${pod2} node=n2`]);
    t.equal(await proxy.tcp("outside", node), "timeout", "dropped without endpoints on the node");
    t.same(await proxy.all("pod1", node, 80, 4), [`pod2 ${pod1}`]);
    t.same(await proxy.all("node", node, 80, 4), [`pod2 ${bridge}`]);
  });

  await t.test("internal traffic with policy Local reaches endpoints of the node or none", async (t) => {
    await proxy.set(web({ internalTrafficPolicy: "Local" }), [`${pod1} node=n2`, `${pod2} node=n1`]);
    t.same(await proxy.all("pod1", IP), [`pod2 ${pod1}`]);
    await proxy.set(web({ internalTrafficPolicy: "Local" }), [`${pod1} node=n2`]);
    t.equal(await proxy.tcp("pod2", IP), "timeout");
  });

  await t.test("external IPs and load balancers restrict sources", async (t) => {
    const external = web(
      { type: "LoadBalancer", externalIPs: ["203.0.113.7"], loadBalancerSourceRanges: ["10.1.0.0/16"] },
      ["203.0.113.9"],
    );
    await proxy.set(external, both);
    t.same(await proxy.all("outside", "203.0.113.7"), [`pod1 ${bridge}`, `pod2 ${bridge}`]);
    t.equal(await proxy.tcp("outside", "203.0.113.9"), "timeout");
    t.same(await proxy.all("pod1", "203.0.113.9"), [`pod1 ${bridge}`, `pod2 ${bridge}`]);
  });

  await t.test("session affinity leads a client to one endpoint, and to another when that is gone", async (t) => {
    const service = web({
      sessionAffinity: "ClientIP",
      type: "NodePort",
      ports: [{ port: 80, protocol: "TCP", nodePort: 30080 }],
    });
    await proxy.set(service, both);
    const [first = ""] = await proxy.all("pod1", IP, 80, 1);
    t.same(await proxy.all("pod1", IP), [first]);
    const [external = ""] = await proxy.all("outside", node, 30080, 1);
    t.same(await proxy.all("outside", node, 30080), [external]);
    const other = first.startsWith("pod1") ? pod2 : pod1;
    await proxy.set(service, [`${other} node=n1`]);
    const [next = ""] = await proxy.all("pod1", IP, 80, 4);
    t.not(next.slice(0, 4), first.slice(0, 4));
    await proxy.set(service, both);
    t.same(await proxy.all("pod1", IP), [next], "the client stays where it is now");
    await proxy.replace();
    t.same(await proxy.all("pod1", IP), [next], "also when the table is replaced");
  });

  await t.test("a service changes its endpoints while clients connect", async (t) => {
    await proxy.set(web(), [both[0]!]);
    t.same(await proxy.all("outside", IP, 80, 6), [`pod1 ${bridge}`]);
    await proxy.set(web(), [both[1]!]);
    t.same(await proxy.all("outside", IP, 80, 6), [`pod2 ${bridge}`]);
    await proxy.remove();
    t.equal(await proxy.tcp("node", IP), "ECONNREFUSED");
  });

  await t.test("UDP flows to an endpoint that is gone move to another one", async (t) => {
    const conntrack = await findSystemProgram("conntrack");
    const udp = web({ type: "NodePort", ports: [{ port: 53, protocol: "UDP", nodePort: 30053 }] });
    t.equal(
      await network.open("outside", "udp", node, 30053, { localPort: 4001 }),
      "ECONNREFUSED",
      "before there is a service",
    );
    const before = await proxy.set(udp, [both[1]!], "UDP");
    t.equal(await network.open("pod1", "udp", IP, 53, { localPort: 4000 }), `pod2 ${pod1}`);
    const after = await proxy.set(udp, [both[0]!], "UDP");
    t.equal(
      await network.open("pod1", "udp", IP, 53, { localPort: 4000 }),
      `pod2 ${pod1}`,
      "the kernel remembers the flow",
    );
    const targets = findChangedTargets(before, after);
    t.same([...targets.keys()], [`${IP} 53`, `${node} 30053`]);
    if (conntrack === undefined) return;
    const flows = (): readonly string[] => network.inside("node", conntrack, "-L", "-p", "udp").split("\n");
    for (const flow of flows().flatMap((line) => findStaleFlow(line, targets) ?? [])) {
      const { source, sourcePort, destination, destinationPort } = flow;
      const tuple = ["-s", source, "-d", destination, "--sport", sourcePort, "--dport", destinationPort];
      network.inside("node", conntrack, "-D", "-p", "udp", ...tuple);
    }
    t.equal(await network.open("pod1", "udp", IP, 53, { localPort: 4000 }), `pod1 ${bridge}`);
    t.equal(await network.open("outside", "udp", node, 30053, { localPort: 4001 }), `pod1 ${bridge}`);
    t.same(
      flows().flatMap((line) => findStaleFlow(line, targets) ?? []),
      [],
    );
    await deleteStaleFlows(conntrack, "IPv4", new Map([["192.0.2.1 9", new Set<string>()]]));
  });

  await t.test("IPv6 services work as IPv4 services", async (t) => {
    const six = proxyService("web", {
      clusterIP: "fd00:96::5",
      clusterIPs: ["fd00:96::5"],
      type: "NodePort",
      ports: [{ port: 80, protocol: "TCP", nodePort: 30080 }],
    });
    await proxy.set(six, [`${addresses.pod1Six} node=n1`, `${addresses.pod2Six} node=n1`]);
    t.same(await proxy.all("pod1", "fd00:96::5"), ["pod1 fd00:1::1", `pod2 ${addresses.pod1Six}`]);
    t.same(await proxy.all("outside", addresses.node6, 30080), ["pod1 fd00:1::1", "pod2 fd00:1::1"]);
    await proxy.set(six, []);
    t.equal(await proxy.tcp("pod1", "fd00:96::5"), "ECONNREFUSED");
  });

  await t.test("rebuilding the table keeps connections possible, and removing it leaves nothing", async (t) => {
    await proxy.set(web(), both);
    await proxy.reset();
    t.same(await proxy.all("pod1", IP), [`pod1 ${bridge}`, `pod2 ${pod1}`]);
    for (const family of ["IPv4", "IPv6"] as const) await proxy.apply(removeTable({ family, table: "t" }));
    t.equal(network.inside("node", "nft", "list", "ruleset"), "");
    await proxy.reset();
  });
});
