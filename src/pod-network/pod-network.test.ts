/** The networks of three nodes in network namespaces: real packets, and what brings them back when something breaks. */
import { existsSync, writeFileSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { nodeKind } from "../api/core/node/kind.ts";
import { createClient } from "../client/api-client.ts";
import { startInformer } from "../client/informer/informer.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { formatMetrics } from "../std/metrics/text-format.ts";
import { type Clock, systemClock } from "../std/time/clock.ts";
import { FakeApi } from "../testing/agent/fake-api.ts";
import { createFakeRouteTools } from "../testing/pod-network/fake-route-tools.ts";
import { NODES, type NodeName, ROUTER, ROUTER6, SimulatedNodes } from "../testing/pod-network/simulated-nodes.ts";
import { findNetworkProblem } from "../testing/proxy/simulated-network.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { until } from "../testing/std/until.ts";
import { openNetworkHost } from "./network-host.ts";
import { networkNames } from "./network-names.ts";
import { keepNetworkNode, type NetworkHost, type PodNetwork, startPodNetwork } from "./pod-network.ts";
import { createPodNetworkMetrics } from "./pod-network-metrics.ts";
import { findRouteTools, IP_MISSING } from "./programs.ts";

t.setTimeout(180_000);

const problem = findNetworkProblem();
const skip = problem === undefined ? false : `cannot make network namespaces: ${problem}`;
const names = networkNames(undefined);

class TestNodes implements AsyncDisposable {
  readonly api = new FakeApi();
  readonly #directory: string;
  readonly #running = new Map<string, { readonly network: PodNetwork; readonly stop: AsyncDisposableStack }>();
  readonly problems: string[] = [];
  /** Of the node that was started last. */
  metrics = new MetricRegistry();

  readonly #clock: Clock;

  constructor(t: Test, clock: Clock = systemClock) {
    this.#directory = t.testdir();
    this.#clock = clock;
  }

  put(name: string, podCidr: string, ...addresses: readonly string[]): void {
    this.api.put(`/api/v1/nodes/${name}`, {
      kind: "Node",
      metadata: { name },
      spec: { podCIDR: podCidr.split(",")[0], podCIDRs: podCidr.split(",") },
      status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })) },
    });
  }

  confDir(name: string): string {
    return join(this.#directory, name, "cni");
  }

  nodeFile(name: string): string {
    return join(this.#directory, name, "nodes");
  }

  async start(name: string, host: NetworkHost, mode: "auto" | "vxlan" = "auto"): Promise<PodNetwork> {
    await mkdir(join(this.#directory, name), { recursive: true });
    const [clock, random, log, stop] = [this.#clock, systemRandom, silentLogger, new AsyncDisposableStack()];
    this.metrics = new MetricRegistry();
    const client = createClient({ transport: this.api.transport });
    const informer = { client, kind: nodeKind, clock, random, log, transform: keepNetworkNode };
    const network = startPodNetwork({
      ...host,
      mode,
      nodeName: name,
      names,
      hairpin: true,
      clusterCidrs: ["10.244.0.0/16", "fd00:244::/32"],
      cni: { confDir: this.confDir(name), leaseDir: "/run/none" },
      nodes: stop.use(startInformer(informer)),
      nodeFile: this.nodeFile(name),
      metrics: createPodNetworkMetrics(this.metrics),
      clock,
      random,
      log,
      onProblem: (text) => this.problems.push(text),
    });
    this.#running.set(name, { network, stop });
    return network;
  }

  async stop(name: string, isRemoved = false): Promise<void> {
    const running = this.#running.get(name);
    this.#running.delete(name);
    await running?.network.close({ removeRoutes: isRemoved, removeConfig: isRemoved });
    await running?.stop.disposeAsync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of [...this.#running.keys()]) await this.stop(name);
  }
}

async function both(one: Promise<boolean>, other: Promise<boolean>): Promise<boolean> {
  const results = await Promise.all([one, other]);
  return results.every((result) => result);
}

t.test("pods of three nodes", { skip, timeout: 180_000 }, async (t) => {
  await using nodes = new TestNodes(t);
  using net = new SimulatedNodes(names.bridge);
  for (const node of NODES) nodes.put(node, SimulatedNodes.podCidr(node), SimulatedNodes.address(node));
  const arrives = (from: NodeName, to: NodeName, bytes?: number): Promise<boolean> =>
    net.pings(`pod-${from}`, SimulatedNodes.pod(to), bytes);
  const routes = (node: NodeName): readonly string[] =>
    net.inside(node, "ip", "route", "show", "proto", "84").trim().split("\n");
  const all = NODES.flatMap((from) => NODES.filter((to) => to !== from).map((to) => [from, to] as const));
  net.inside("a", "nft", "add", "table", "ip", "other");

  await t.test("each reaches each other with its own address", async (t) => {
    t.notOk((await arrives("a", "b")) || (await arrives("a", "c")));
    for (const node of NODES) await (await nodes.start(node, net.host(node))).ready;
    net.inside("c", "nft", "add table ip seen; add chain ip seen in { type filter hook forward priority 0; }");
    net.inside("c", "nft", "add rule ip seen in ip saddr 10.244.0.2 ip daddr 10.244.2.2 counter");
    for (const [from, to] of all) t.ok(await arrives(from, to), `${from} to ${to}`);
    t.notMatch(net.inside("c", "nft", "list", "table", "ip", "seen"), "counter packets 0");
    for (const [from, to] of all) t.ok(await net.pings(from, SimulatedNodes.pod(to)), `from node ${from} to ${to}`);
    t.same(routes("a"), [
      `10.244.1.0/24 via ${SimulatedNodes.address("b")} dev eth0 metric 8400 `,
      "10.244.2.0/24 via 10.244.2.0 dev svc-vxlan metric 8400 onlink",
    ]);
    t.match(net.inside("a", "ip", "link", "show", "svc-vxlan"), "mtu 1450");
    for (const [from, to] of all) t.ok(await arrives(from, to, 4000), `large packets from ${from} to ${to}`);
    t.equal(await net.transfer("a", "c", 2_000_000), 2_000_000, "path MTU discovery finds the size of segments");
    t.equal(await net.transfer("c", "b", 2_000_000), 2_000_000);
    t.match(await readFile(join(nodes.confDir("c"), "10-svc.conflist"), "utf8"), '"subnet": "10.244.2.0/24"');
  });

  await t.test("packets that leave the cluster get the node's address", async (t) => {
    t.ok(await net.pings("pod-a", ROUTER), "the router has no route back to pods");
    net.inside("a", "nft", "delete", "table", "ip", names.table);
    t.notOk(await net.pings("pod-a", ROUTER));
    nodes.put("a", SimulatedNodes.podCidr("a"), SimulatedNodes.address("a"), "2001:db8::1");
    t.ok(await until("the rules", () => net.pings("pod-a", ROUTER)), "the next comparison restores them");
  });

  const broken: readonly (readonly [string, () => void])[] = [
    ["routes were deleted", () => net.inside("a", "ip", "route", "flush", "proto", "84")],
    ["the device was deleted", () => net.inside("a", "ip", "link", "delete", "svc-vxlan")],
    ["the device was taken down", () => net.inside("a", "ip", "link", "set", "svc-vxlan", "down")],
    ["the interface of the node was down", () => net.flap("a")],
  ];
  for (const [what, breakIt] of broken) {
    await t.test(`the ways are restored when ${what}`, async (t) => {
      breakIt();
      await until("the ways to b and c", () => both(arrives("a", "b"), arrives("a", "c")), { timeoutMs: 15_000 });
      t.equal(routes("a").length, 2);
    });
  }

  await t.test("a restart changes nothing, and needs no API server", async (t) => {
    const before = routes("a");
    await nodes.stop("a");
    t.same(routes("a"), before, "the network stays");
    nodes.api.isDown = true;
    await (await nodes.start("a", net.host("a"))).ready;
    t.same(routes("a"), before);
    await nodes.stop("a");
    net.inside("a", "ip", "link", "delete", "svc-vxlan");
    net.inside("a", "ip", "route", "flush", "proto", "84");
    await (await nodes.start("a", net.host("a"))).ready;
    for (const to of ["b", "c"] as const) t.ok(await arrives("a", to), `to ${to}`);
    nodes.api.isDown = false;
  });

  await t.test("a node changes its address", async (t) => {
    net.inside("c", "ip", "addr", "delete", "203.0.113.3/24", "dev", "eth0");
    net.inside("c", "ip", "addr", "add", "203.0.113.4/24", "dev", "eth0");
    net.inside("c", "ip", "route", "replace", "default", "via", "203.0.113.254");
    nodes.put("c", SimulatedNodes.podCidr("c"), "203.0.113.4");
    await until("ways from and to c", () => both(arrives("a", "c"), arrives("c", "b")), { timeoutMs: 15_000 });
    t.notMatch(net.inside("a", "bridge", "fdb", "show", "dev", "svc-vxlan"), "203.0.113.3");
  });

  await t.test("a node gets another pod CIDR", async (t) => {
    nodes.put("b", "10.244.9.0/24", SimulatedNodes.address("b"));
    await until("the route", () => routes("a").some((line) => line.startsWith("10.244.9.0/24 via 198.51.100.2 ")));
    t.notMatch(routes("a").join(), "10.244.1.0/24");
    const conflist = () => readFile(join(nodes.confDir("b"), "10-svc.conflist"), "utf8");
    await until("the configuration", async () => (await conflist()).includes("10.244.9.0/24"));
    nodes.put("b", SimulatedNodes.podCidr("b"), SimulatedNodes.address("b"));
    await until("the former way", () => both(arrives("a", "b"), arrives("b", "a")));
  });

  await t.test("ranges that a node must not have are left out, and reported", async (t) => {
    nodes.put("b", "198.51.100.0/24", SimulatedNodes.address("b"));
    await until("the report", () => nodes.problems.find((text) => text.includes("is outside of the cluster's range")));
    t.notMatch(net.inside("a", "ip", "route"), "198.51.100.0/24 via");
    nodes.put("b", SimulatedNodes.podCidr("b"), SimulatedNodes.address("b"));
    await until("the former way", () => arrives("a", "b"));
  });

  await t.test("mode vxlan reaches nodes of the same network by the device", async (t) => {
    for (const node of ["a", "b"] as const) {
      await nodes.stop(node);
      await (await nodes.start(node, net.host(node), "vxlan")).ready;
    }
    t.match(routes("a").join(), "10.244.1.0/24 via 10.244.1.0 dev svc-vxlan");
    t.ok(await arrives("a", "b"));
    for (const node of ["a", "b"] as const) {
      await nodes.stop(node);
      await (await nodes.start(node, net.host(node))).ready;
    }
    t.match(routes("a").join(), "10.244.1.0/24 via 198.51.100.2");
    t.ok(await both(arrives("a", "b"), arrives("b", "a")));
  });

  await t.test("a removed node leaves nothing", async (t) => {
    nodes.api.delete("/api/v1/nodes/c");
    await until("the removal", () => routes("a").length === 1);
    t.throws(() => net.inside("a", "ip", "link", "show", "svc-vxlan"), "no device without a node that needs it");
    nodes.put("c", SimulatedNodes.podCidr("c"), "203.0.113.4");
    await until("the way to c", () => arrives("a", "c"), { timeoutMs: 15_000 });
  });

  await t.test("another pod network is left alone", async (t) => {
    writeFileSync(join(nodes.confDir("b"), "10-calico.conflist"), "{}");
    nodes.put("b", SimulatedNodes.podCidr("b"), SimulatedNodes.address("b"), "2001:db8::2");
    await until("the removal", () => net.inside("b", "ip", "route", "show", "proto", "84") === "");
    t.notMatch(net.inside("b", "nft", "list", "tables"), names.table);
    await t.rejects(readFile(join(nodes.confDir("b"), "10-svc.conflist")));
    await rm(join(nodes.confDir("b"), "10-calico.conflist"));
    nodes.put("b", SimulatedNodes.podCidr("b"), SimulatedNodes.address("b"));
    await until("the network again", () => both(arrives("b", "a"), arrives("b", "c")));
  });

  await t.test("the removal takes all that is of the network, and nothing else", async (t) => {
    net.inside("a", "ip", "route", "add", "10.244.77.0/24", "via", ROUTER);
    await nodes.stop("a", true);
    t.same(net.inside("a", "ip", "route", "show", "proto", "84"), "");
    t.match(net.inside("a", "ip", "route"), `10.244.77.0/24 via ${ROUTER} dev eth0`);
    t.equal(net.inside("a", "nft", "list", "tables").trim(), "table ip other");
    t.throws(() => net.inside("a", "ip", "link", "show", "svc-vxlan"));
    t.match(net.inside("a", "ip", "link", "show", names.bridge), names.bridge, "a bridge with pods stays");
    await t.rejects(readFile(nodes.nodeFile("a")));
    net.inside("c", "ip", "link", "delete", "veth0");
    await nodes.stop("c", true);
    t.throws(() => net.inside("c", "ip", "link", "show", names.bridge));
  });
});

t.test("pods of three nodes by IPv6", { skip, timeout: 180_000 }, async (t) => {
  const stacks: readonly (readonly [string, (node: NodeName) => readonly [string, ...string[]]])[] = [
    [
      "beside IPv4",
      (node) => [
        `${SimulatedNodes.podCidr(node)},${SimulatedNodes.podCidr6(node)}`,
        SimulatedNodes.address(node),
        SimulatedNodes.address6(node),
      ],
    ],
    ["alone", (node) => [SimulatedNodes.podCidr6(node), SimulatedNodes.address6(node)]],
  ];
  for (const [title, valuesOf] of stacks) {
    await t.test(title, async (t) => {
      await using nodes = new TestNodes(t);
      using net = new SimulatedNodes(names.bridge);
      for (const node of NODES) nodes.put(node, ...valuesOf(node));
      const arrives = (from: NodeName, to: NodeName, bytes?: number): Promise<boolean> =>
        net.pings(`pod-${from}`, SimulatedNodes.pod6(to), bytes);
      const all = NODES.flatMap((from) => NODES.filter((to) => to !== from).map((to) => [from, to] as const));
      t.notOk((await arrives("a", "b")) || (await arrives("a", "c")));
      for (const node of NODES) await (await nodes.start(node, net.host(node))).ready;
      net.inside("c", "nft", "add table ip6 seen; add chain ip6 seen in { type filter hook forward priority 0; }");
      net.inside("c", "nft", `add rule ip6 seen in ip6 saddr ${SimulatedNodes.pod6("a")} counter`);
      for (const [from, to] of all) t.ok(await arrives(from, to), `${from} to ${to}`);
      for (const [from, to] of all) t.ok(await arrives(from, to, 4000), `large packets from ${from} to ${to}`);
      for (const [from, to] of all) t.ok(await net.pings(from, SimulatedNodes.pod6(to)), `from node ${from} to ${to}`);
      t.notMatch(net.inside("c", "nft", "list", "table", "ip6", "seen"), "counter packets 0", "by its own address");
      const routes = (): string => net.inside("a", "ip", "-6", "route", "show", "proto", "84");
      t.match(routes(), /^fd00:244:1::\/64 via fd00:51::2 dev eth0 metric 8400 /m);
      t.match(routes(), /^fd00:244:2::\/64 via fd00:244:2:: dev svc-vxlan metric 8400 /m);
      t.ok(await net.pings("pod-a", ROUTER6), "packets that leave the cluster get the node's address");
      net.inside("a", "ip", "-6", "route", "flush", "proto", "84");
      await until("the ways to b and c", () => both(arrives("a", "b"), arrives("a", "c")), { timeoutMs: 15_000 });
      net.inside("a", "ip", "link", "delete", "svc-vxlan");
      await until("the ways again", () => both(arrives("a", "b"), arrives("c", "a")), { timeoutMs: 15_000 });
      await nodes.stop("a", true);
      t.equal(routes(), "");
      t.same(nodes.problems, []);
    });
  }
});

t.test("without iproute2 a node alone has its network, and several have an explanation", async (t) => {
  const host = await openNetworkHost(undefined, async (name) => (name === "iptables" ? "/sbin/iptables" : undefined));
  t.match(host, { tools: undefined, nft: undefined, hasIptables: true });
  t.equal(await findRouteTools(async (name) => (name === "ip" ? "/sbin/ip" : undefined)), undefined);
  await using nodes = new TestNodes(t);
  nodes.put("n1", "10.244.0.0/24", "192.0.2.1");
  await (await nodes.start("n1", { ...host, enableForwarding: async () => {} })).ready;
  t.match(await readFile(join(nodes.confDir("n1"), "10-svc.conflist"), "utf8"), '"ipMasq": true');
  t.same(nodes.problems, []);
  nodes.put("n2", "10.244.1.0/24", "192.0.2.2");
  await until("the report", () => nodes.problems.length > 0);
  t.same(nodes.problems, [IP_MISSING]);
});

t.test("rules and the configuration that disappear without an event are restored within a minute", async (t) => {
  const clock = new FakeClock();
  await using nodes = new TestNodes(t, clock);
  nodes.put("n1", "10.244.0.0/24", "192.0.2.1");
  const transactions: string[] = [];
  let isFlushed = false;
  const nft = {
    apply: async (text: string) => {
      if (text.startsWith("list") && isFlushed) throw new Error("No such file or directory");
      if (!text.startsWith("list")) transactions.push(text);
    },
  };
  const host = { tools: createFakeRouteTools([]), nft, hasIptables: true, enableForwarding: async () => {} };
  const network = await nodes.start("n1", host);
  let isReady = false;
  void network.ready.then(() => {
    isReady = true;
  });
  // Files take real time.
  const wait = async (): Promise<void> => {
    await setTimeout(2);
    await clock.advance(10);
  };
  await until("the network", () => isReady, { wait });
  for (let step = 0; step < 50; step++) await wait();
  const { length } = transactions;
  isFlushed = true;
  const conflist = join(nodes.confDir("n1"), "10-svc.conflist");
  await rm(conflist);
  for (let step = 0; step < 50; step++) await wait();
  t.equal(transactions.length, length, "not before");
  await clock.advance(60_000);
  await until("both", () => transactions.length > length && existsSync(conflist), { wait });
});

t.test("a failure of nftables does not prevent routes, and is reported once", async (t) => {
  await using nodes = new TestNodes(t);
  const commands: string[] = [];
  nodes.put("n1", "10.244.0.0/24", "192.0.2.1");
  nodes.put("n2", "10.244.1.0/24", "192.0.2.2");
  let attempts = 0;
  await nodes.start("n1", {
    tools: createFakeRouteTools(commands),
    nft: {
      apply: async () => {
        attempts++;
        throw new Error("Operation not permitted");
      },
    },
    hasIptables: true,
    enableForwarding: async () => {},
  });
  await until("the second attempt", () => attempts > 1);
  t.same(commands[0], "route replace 10.244.1.0/24 via 192.0.2.2 dev eth0 proto 84 metric 8400");
  t.same(nodes.problems, ["Operation not permitted"]);
  const page = formatMetrics([nodes.metrics], "prometheus");
  t.match(page, /^svc_pod_network_failures_total [1-9]/m);
  t.match(page, 'svc_pod_network_routes{way="direct"} 1\n');
});
