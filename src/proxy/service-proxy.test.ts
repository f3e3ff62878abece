import { get } from "node:http";
import t from "tap";
import { nodeKind } from "../api/core/node/kind.ts";
import type { Node } from "../api/core/node/schema.ts";
import { serviceKind } from "../api/core/service/kind.ts";
import type { Service } from "../api/core/service/schema.ts";
import { endpointSliceKind } from "../api/discovery/endpoint-slice/kind.ts";
import { serviceCIDRKind } from "../api/networking/service-cidr/kind.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { FakeInformers } from "../testing/client/fake-informers.ts";
import { proxyService, proxySlice } from "../testing/proxy/objects.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { freePort } from "../testing/std/free-port.ts";
import { TurnMeter } from "../testing/std/turn-meter.ts";
import { readListeningPorts } from "./listening-ports.ts";
import { createProxyMetrics } from "./proxy-metrics.ts";
import { removeProxyRules, type ServiceProxy, startServiceProxy } from "./service-proxy.ts";

const node: Node = {
  metadata: { name: "n1", labels: { "topology.kubernetes.io/zone": "za" } },
  status: {
    addresses: [
      { type: "InternalIP", address: "192.0.2.1" },
      { type: "Hostname", address: "n1" },
    ],
  },
};
t.setTimeout(120_000);

const web = proxyService("web", { clusterIP: "10.96.0.5" });

class Fixture {
  readonly informers = new FakeInformers();
  readonly clock = new FakeClock();
  readonly transactions: string[] = [];
  readonly problems: string[] = [];
  /** Of each transaction: ports with internal and with external policy Local that have no endpoints on the node. */
  readonly withoutLocal: (readonly [internal: number, external: number])[] = [];
  /** Transactions fail while it is true. */
  isFailing = false;
  readonly proxy: ServiceProxy;

  constructor(objects: { readonly services?: readonly Service[]; readonly cidrs?: readonly string[] } = {}) {
    const { services = [web], cidrs = [] } = objects;
    this.informers.put(nodeKind, node);
    this.informers.put(serviceKind, ...services);
    if (cidrs.length > 0) this.informers.put(serviceCIDRKind, { metadata: { name: "kubernetes" }, spec: { cidrs } });
    this.proxy = startServiceProxy({
      nodeName: "n1",
      table: "t",
      clusterCidrs: ["10.244.0.0/16"],
      serviceCidrs: [],
      nodes: this.informers.of(nodeKind),
      informers: this.informers,
      nft: {
        apply: async (commands) => {
          if (this.isFailing) throw new Error("Could not process rule");
          this.transactions.push(commands);
        },
      },
      listeningPorts: async () => new Set(["tcp 22 *", "tcp 25 192.0.2.9"]),
      metrics: {
        ...createProxyMetrics(new MetricRegistry(), this.clock),
        recordFamilySync: (family, _seconds, _isFull, { internal, external }) => {
          if (family === "IPv4") this.withoutLocal.push([internal, external]);
        },
      },
      clock: this.clock,
      random: systemRandom,
      log: silentLogger,
      onProblem: ({ metadata }, reason, message) => void this.problems.push(`${metadata?.name} ${reason}: ${message}`),
    });
  }

  async pass(milliseconds = 20): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
    await this.clock.advance(milliseconds);
    for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  async start(): Promise<void> {
    this.informers.sync();
    await this.pass();
    await this.proxy.ready;
  }
}

function fixture(
  t: { teardown(action: () => unknown): void },
  ...args: ConstructorParameters<typeof Fixture>
): Fixture {
  const made = new Fixture(...args);
  t.teardown(() => made.proxy.close({ removeRules: false }));
  return made;
}

t.test("nothing is installed until all services and endpoints are known; then one transaction has all", async (t) => {
  const f = fixture(t, { cidrs: ["10.96.0.0/16", "fd00:96::/112"] });
  await f.pass(1000);
  t.same(f.transactions, []);
  f.informers.put(endpointSliceKind, proxySlice("web", ["10.244.0.2"]));
  await f.start();
  t.equal(f.transactions.length, 1);
  const [text = ""] = f.transactions;
  t.match(text, "table ip t {");
  t.match(text, "elements = { 10.244.0.0/16 }");
  t.match(text, "elements = { 10.96.0.0/16 }");
  t.match(text, "add element ip t services { 10.96.0.5 . tcp . 80 : goto choose-1 }");
  t.ok(f.proxy.isHealthy);
});

t.test(
  "a node that is deleted, or that the cluster autoscaler deletes next, is not eligible for load balancers",
  async (t) => {
    const f = fixture(t);
    await f.start();
    const eligible = (changed: Node): boolean => {
      f.informers.put(nodeKind, changed);
      return f.proxy.isNodeEligible;
    };
    const taint = (key: string): Node => ({ ...node, spec: { taints: [{ key, effect: "NoSchedule" }] } });
    t.equal(eligible(taint("example.com/any")), true);
    t.equal(eligible(taint("ToBeDeletedByClusterAutoscaler")), false);
    t.equal(eligible(node), true);
    t.equal(eligible({ ...node, metadata: { ...node.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }), false);
  },
);

t.test("changes that follow one another are one transaction", async (t) => {
  const f = fixture(t);
  await f.start();
  f.informers.put(endpointSliceKind, proxySlice("web", ["10.244.0.2"]));
  f.informers.put(serviceKind, proxyService("other", { clusterIP: "10.96.0.6" }));
  await f.pass();
  t.equal(f.transactions.length, 2);
  t.match(f.transactions[1], "10.96.0.5 . tcp . 80 : goto choose-1");
  t.match(f.transactions[1], "refused { 10.96.0.6 . tcp . 80 : goto refuse }");
  f.informers.put(endpointSliceKind, { ...proxySlice("web", ["10.244.0.2"]) });
  await f.pass();
  t.equal(f.transactions.length, 2, "no transaction without a change of rules");
  f.informers.delete(serviceKind, web);
  await f.pass();
  t.match(f.transactions[2], "delete element ip t cluster-ips { 10.96.0.5 }");
});

t.test("after a failed transaction the whole table is replaced, with back-off", async (t) => {
  const f = fixture(t);
  await f.start();
  f.isFailing = true;
  f.informers.put(endpointSliceKind, proxySlice("web", ["10.244.0.2"]));
  await f.pass();
  t.notOk(f.proxy.isHealthy);
  f.isFailing = false;
  await f.pass(30_000);
  await f.pass();
  t.ok(f.proxy.isHealthy);
  t.match(f.transactions.at(-1), "delete table ip t\ntable ip t {");
  t.match(f.transactions.at(-1), "10.96.0.5 . tcp . 80 : goto choose-1");
});

t.test("a service that is deleted while transactions fail leaves nothing", async (t) => {
  const f = fixture(t);
  await f.start();
  f.isFailing = true;
  f.informers.delete(serviceKind, web);
  await f.pass();
  f.isFailing = false;
  await f.pass(30_000);
  await f.pass();
  t.notMatch(f.transactions.at(-1), "10.96.0.5");
  f.informers.put(serviceKind, web);
  await f.pass();
  t.match(f.transactions.at(-1), "add element ip t refused { 10.96.0.5 . tcp . 80 : goto refuse }");
});

t.test("a table that another program removed is installed again within a minute", async (t) => {
  const f = fixture(t);
  await f.start();
  await f.pass(60_000);
  await f.pass();
  t.equal(f.transactions.at(-1), "list chain ip t services\n");
  f.isFailing = true;
  await f.pass(60_000);
  await f.pass();
  f.isFailing = false;
  await f.pass(30_000);
  await f.pass();
  t.match(f.transactions.at(-1), "table ip t {");
});

t.test("the table of IPv6 appears with the first service that needs it", async (t) => {
  const f = fixture(t);
  await f.start();
  t.notOk(f.transactions.some((text) => text.includes("ip6")));
  const six = { clusterIP: "fd00:96::5", clusterIPs: ["fd00:96::5"] };
  f.informers.put(serviceKind, proxyService("six", six));
  await f.pass();
  t.match(f.transactions.at(-1), "table ip6 t {");
  t.match(f.transactions.at(-1), "fd00:96::5 . tcp . 80 : goto refuse");
});

t.test("the node's address and zone, and the ranges of services, change while the proxy runs", async (t) => {
  const port = { port: 80, protocol: "TCP", nodePort: 30080 } as const;
  const f = fixture(t, {
    services: [proxyService("web", { type: "NodePort", clusterIP: "10.96.0.5", ports: [port] })],
  });
  f.informers.put(endpointSliceKind, proxySlice("web", ["10.244.0.2 zone=za", "10.244.0.3 zone=zb"]));
  await f.start();
  t.match(f.transactions[0], "192.0.2.1 . tcp . 30080 : 10.244.0.2 . 8080");
  const moved = { type: "InternalIP", address: "192.0.2.7" };
  const labels = { "topology.kubernetes.io/zone": "zb" };
  f.informers.put(nodeKind, { metadata: { name: "n1", labels }, status: { addresses: [moved] } });
  await f.pass();
  t.match(f.transactions[1], "192.0.2.7 . tcp . 30080 : 10.244.0.3 . 8080");
  t.match(f.transactions[1], /delete element ip t services \{.*192\.0\.2\.1 \. tcp \. 30080/);
  f.informers.put(serviceCIDRKind, { metadata: { name: "more" }, spec: { cidrs: ["10.97.0.0/16"] } });
  await f.pass();
  t.match(f.transactions[2], "elements = { 10.97.0.0/16 }");
});

t.test("an address that two services want is reported", async (t) => {
  const externalIPs = ["198.51.100.7"];
  const services = ["a", "b"].map((name, i) => proxyService(name, { clusterIP: `10.96.0.${5 + i}`, externalIPs }));
  const f = fixture(t, { services });
  await f.start();
  t.same(f.problems, ["b AddressConflict: Service shop/a already uses 198.51.100.7 tcp 80"]);
});

t.test("a load balancer does not take away the port of a program of the host", async (t) => {
  const ports = [22, 25].map((port) => ({ name: `p${port}`, port, protocol: "TCP" as const }));
  const balancer = proxyService("mail", { type: "LoadBalancer", clusterIP: "10.96.0.5", ports }, ["192.0.2.1"]);
  const f = fixture(t, { services: [balancer] });
  await f.start();
  t.match(f.transactions[0], "192.0.2.1 . tcp . 25 : goto refuse");
  t.notMatch(f.transactions[0], "192.0.2.1 . tcp . 22");
  t.match(f.transactions[0], "10.96.0.5 . tcp . 22 : goto refuse");
  t.same(f.problems, ["mail PortConflict: A program of node n1 listens at port 22/TCP"]);
});

t.test("readListeningPorts() lists listening TCP and unconnected UDP sockets with their addresses", async (t) => {
  const head = "  sl  local_address rem_address   st\n";
  const files: Readonly<Record<string, string>> = {
    "/proc/net/tcp": `${head}   0: 00000000:0016 00000000:0000 0A\n   1: 010200C0:1F90 010200C0:1111 01\n`,
    "/proc/net/tcp6": `${head}   0: B80D0120000000000000000001000000:0050 00000000000000000000000000000000:0000 0A\n`,
    "/proc/net/udp": `${head}   0: 0100007F:0035 00000000:0000 07\n`,
    "/proc/net/udp6": "",
  };
  const found = await readListeningPorts(async (path) => files[path] ?? "");
  t.same([...found], ["tcp 22 *", "tcp 80 2001:db8::1", "udp 53 127.0.0.1"]);
  t.ok((await readListeningPorts()).size >= 0, "the files of this machine can be read");
});

t.test("the health check of a service with local external traffic counts the node's endpoints", async (t) => {
  const healthCheckNodePort = await freePort();
  const spec = { type: "LoadBalancer", clusterIP: "10.96.0.5", externalTrafficPolicy: "Local" } as const;
  const f = fixture(t, { services: [proxyService("web", { ...spec, healthCheckNodePort })] });
  await f.start();
  const check = () =>
    new Promise<readonly [number | undefined, string, unknown]>((resolve, reject) => {
      get({ host: "127.0.0.1", port: healthCheckNodePort, agent: false }, (response) => {
        let body = "";
        response.on("data", (data) => {
          body += data;
        });
        const weight = response.headers["x-load-balancing-endpoint-weight"];
        response.on("end", () => resolve([response.statusCode, String(weight), body]));
      }).on("error", reject);
    });
  const answer = (localEndpoints: number, isHealthy = true) => `{
\t"service": {
\t\t"namespace": "shop",
\t\t"name": "web"
\t},
\t"localEndpoints": ${localEndpoints},
\t"serviceProxyHealthy": ${isHealthy}
}`;
  t.same(await check(), [503, "0", answer(0)]);
  f.informers.put(endpointSliceKind, proxySlice("web", ["10.244.0.2 node=n1", "10.244.0.3 node=n2"]));
  await f.pass();
  t.same(await check(), [200, "1", answer(1)]);
  f.isFailing = true;
  f.informers.put(endpointSliceKind, proxySlice("web", ["10.244.0.2 node=n1"]));
  await f.pass();
  t.same(await check(), [503, "1", answer(1, false)], "while nft fails");
  f.isFailing = false;
  await f.pass(1000);
  t.same(await check(), [200, "1", answer(1)]);
  f.informers.delete(serviceKind, proxyService("web", {}));
  await f.pass();
  await t.rejects(check());
});

t.test("the ports whose traffic policy is Local are counted while only other nodes have their endpoints", async (t) => {
  const spec = { type: "NodePort", externalTrafficPolicy: "Local" } as const;
  const [a, b] = ["a", "b"].map((name, i) => {
    const internalTrafficPolicy = name === "a" ? "Local" : "Cluster";
    return proxyService(name, { ...spec, internalTrafficPolicy, clusterIP: `10.96.0.${i + 5}` });
  });
  const f = fixture(t, { services: [a!, b!] });
  await f.start();
  t.same(f.withoutLocal.at(-1), [0, 0], "services without endpoints are not counted");
  for (const name of ["a", "b"]) f.informers.put(endpointSliceKind, proxySlice(name, ["10.244.0.3 node=n2"]));
  await f.pass();
  t.same(f.withoutLocal.at(-1), [1, 2]);
  f.isFailing = true;
  f.informers.put(endpointSliceKind, proxySlice("b", ["10.244.0.2 node=n1"]));
  await f.pass();
  f.isFailing = false;
  await f.pass(1000);
  t.same(f.withoutLocal.at(-1), [1, 1], "after a transaction that failed");
  f.informers.delete(serviceKind, a!);
  await f.pass();
  t.same(f.withoutLocal.at(-1), [0, 0]);
});

t.test("services with thousands of ports, addresses, source ranges and endpoints take short turns", async (t) => {
  const f = new Fixture();
  await f.start();
  const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
  const ip = (block: number, index: number): string => `${block}.1.${index >> 8}.${index & 255}`;
  const ports = (count: number) =>
    times(count, (index) => ({ name: `p${index}`, port: index + 1, protocol: "TCP" as const }));
  const ranges = (count: number) => times(count, (index) => `${ip(30, index)}/32`);
  const services: readonly (readonly [Service, number, RegExp | undefined])[] = [
    [proxyService("ports", { clusterIP: "10.96.1.1", ports: ports(4000) }), 1, undefined],
    [proxyService("endpoints", { clusterIP: "10.96.1.2" }), 10_000, undefined],
    [
      proxyService(
        "ranges",
        { type: "LoadBalancer", clusterIP: "10.96.1.3", ports: ports(2000), loadBalancerSourceRanges: ranges(5000) },
        ["192.0.2.1"],
      ),
      1,
      undefined,
    ],
    // Each address with each port would be 6 million rules.
    [
      proxyService("addresses", {
        clusterIP: "10.96.1.4",
        ports: ports(2000),
        externalIPs: times(3_000, (index) => ip(40, index)),
      }),
      1,
      /TooManyAddresses: The proxy does not use 2988 IPv4 addresses/,
    ],
    [
      proxyService(
        "ingress",
        { type: "LoadBalancer", clusterIP: "10.96.1.5", loadBalancerSourceRanges: ranges(5000) },
        times(10_000, (index) => ip(50, index)),
      ),
      1,
      /TooManyAddresses: The proxy does not use 9900 IPv4 addresses/,
    ],
  ];
  for (const [service, endpoints, problem] of services) {
    const name = service.metadata?.name ?? "";
    const slice = {
      ...proxySlice(
        name,
        times(endpoints, (index) => ip(10, index)),
      ),
      ports: service.spec?.ports ?? [],
    };
    const { length } = f.transactions;
    using meter = new TurnMeter();
    meter.take();
    f.informers.put(endpointSliceKind, slice);
    f.informers.put(serviceKind, service);
    while (f.transactions.length === length) await f.pass();
    const ms = meter.take();
    // In one turn they took 150 to 400 ms, and addresses the heap.
    t.ok(ms < 100, `${name}: ${Math.round(ms)} ms`);
    t.ok((f.transactions.at(-1)?.length ?? 0) < 5e6, `${name}: ${f.transactions.at(-1)?.length} characters`);
    if (problem !== undefined) t.match(f.problems.at(-1), problem);
  }
});

t.test("close() removes the tables on request, and nothing otherwise", async (t) => {
  const kept = new Fixture();
  await kept.start();
  await kept.proxy.close({ removeRules: false });
  t.equal(kept.transactions.length, 1);
  const removed = new Fixture();
  await removed.start();
  await Promise.all([removed.proxy.close({ removeRules: true }), removed.proxy.close({ removeRules: true })]);
  t.same(removed.transactions.slice(1), [removeProxyRules("t")[0]]);
  const unused = new Fixture();
  await unused.proxy.close({ removeRules: true });
  t.same(unused.transactions, []);
  await t.rejects(unused.proxy.ready, /stopped/);
});
