/** Services and endpoints in, text of transactions out. */
import t from "tap";
import type { Service } from "../../api/core/service/schema.ts";
import { proxyService, proxySlice } from "../../testing/proxy/objects.ts";
import { readSlice } from "../endpoints.ts";
import { computeFrontends, type ServiceFrontends } from "../frontends.ts";
import { parseAffinityClients } from "./affinity-clients.ts";
import { ServiceTable } from "./service-table.ts";

const options = { family: "IPv4", table: "t", clusterCidrs: ["10.1.0.0/16"], serviceCidrs: ["10.96.0.0/16"] } as const;
const node = { name: "n1", zone: undefined, addresses: ["192.0.2.1"] };

function frontends(service: Service, ...endpoints: readonly string[]): ServiceFrontends {
  return ofProtocol(service, "TCP", ...endpoints);
}

function ofProtocol(service: Service, protocol: "TCP" | "UDP", ...endpoints: readonly string[]): ServiceFrontends {
  const slice = readSlice(proxySlice(service.metadata?.name ?? "", endpoints, { protocol }));
  return computeFrontends(service, slice === undefined ? [] : [slice], "IPv4", node);
}

/** The lines of the transaction without the table's name and without shared maps and chains. */
function lines(text: string): readonly string[] {
  return text
    .trim()
    .split("\n")
    .map((line) => line.replace(" ip t ", " "))
    .filter((line) => !/ (?:map|chain|rule) (?:local-endpoints|endpoints|pick|choose|masquerade-choose)-/.test(line));
}

function updated(...services: readonly (readonly [string, ServiceFrontends | undefined])[]): readonly string[] {
  return lines(new ServiceTable(options).update(new Map(services)).text());
}

const clusterIp = proxyService("web", { clusterIP: "10.96.0.5" });

t.test("a cluster IP leads to one of the endpoints", async (t) => {
  t.same(updated(["web", frontends(clusterIp, "10.1.0.1 node=n1", "10.1.0.2 node=n2")]), [
    "add element cluster-ips { 10.96.0.5 }",
    "add element hairpins { 10.1.0.1 . 10.1.0.1 }",
    "add element endpoints-0 { 10.96.0.5 . tcp . 80 : 10.1.0.1 . 8080 }",
    "add element endpoints-1 { 10.96.0.5 . tcp . 80 : 10.1.0.2 . 8080 }",
    "add element services { 10.96.0.5 . tcp . 80 : goto choose-2 }",
  ]);
});

t.test("the first service with so many endpoints creates the chains that choose among them", async (t) => {
  const table = new ServiceTable(options);
  const change = new Map([["web", frontends(clusterIp, "10.1.0.1", "10.1.0.2")]]);
  const text = table.update(change).text();
  t.match(text, "add rule ip t choose-2 numgen random mod 2 vmap { 0 : goto pick-0, 1 : goto pick-1 }\n");
  t.match(text, "add rule ip t pick-1 meta l4proto { tcp, udp, sctp } dnat ip to ");
  const other = proxyService("other", { clusterIP: "10.96.0.6" });
  const next = table.update(new Map([["other", frontends(other, "10.1.0.1", "10.1.0.2")]])).text();
  t.notMatch(next, "chain");
});

const tables: readonly {
  readonly title: string;
  readonly service: Service;
  readonly endpoints: readonly string[];
  readonly protocol?: "TCP" | "UDP";
  /** Elements besides the cluster IP's own. */
  readonly elements: readonly string[];
}[] = [
  {
    title: "a service without endpoints is refused",
    service: proxyService("web", { clusterIP: "10.96.0.5" }),
    endpoints: [],
    elements: ["refused 10.96.0.5 . tcp . 80 : goto refuse"],
  },
  {
    title: "a node port leads to all endpoints, from the node's address",
    service: proxyService("web", {
      type: "NodePort",
      clusterIP: "10.96.0.5",
      ports: [{ port: 80, protocol: "TCP", nodePort: 30080 }],
    }),
    endpoints: ["10.1.0.1"],
    elements: [
      "endpoints-0 10.96.0.5 . tcp . 80 : 10.1.0.1 . 8080",
      "services 10.96.0.5 . tcp . 80 : goto choose-1",
      "endpoints-0 192.0.2.1 . tcp . 30080 : 10.1.0.1 . 8080",
      "services 192.0.2.1 . tcp . 30080 : goto masquerade-choose-1",
    ],
  },
  {
    title: "external IPs and addresses of load balancers are as node ports",
    service: proxyService("web", { type: "LoadBalancer", clusterIP: "10.96.0.5", externalIPs: ["198.51.100.7"] }, [
      "203.0.113.9",
    ]),
    endpoints: ["10.1.0.1"],
    elements: [
      "endpoints-0 10.96.0.5 . tcp . 80 : 10.1.0.1 . 8080",
      "services 10.96.0.5 . tcp . 80 : goto choose-1",
      "endpoints-0 198.51.100.7 . tcp . 80 : 10.1.0.1 . 8080",
      "services 198.51.100.7 . tcp . 80 : goto masquerade-choose-1",
      "endpoints-0 203.0.113.9 . tcp . 80 : 10.1.0.1 . 8080",
      "services 203.0.113.9 . tcp . 80 : goto masquerade-choose-1",
    ],
  },
  {
    title: "external traffic with policy Local goes to the node's endpoints, that of pods and the node to all",
    service: proxyService("web", { type: "LoadBalancer", clusterIP: "10.96.0.5", externalTrafficPolicy: "Local" }, [
      "203.0.113.9",
    ]),
    endpoints: ["10.1.0.1 node=n2", "10.1.0.2 node=n1"],
    elements: [
      "hairpins 10.1.0.2 . 10.1.0.2",
      "endpoints-0 10.96.0.5 . tcp . 80 : 10.1.0.1 . 8080",
      "endpoints-1 10.96.0.5 . tcp . 80 : 10.1.0.2 . 8080",
      "services 10.96.0.5 . tcp . 80 : goto choose-2",
      "endpoints-0 203.0.113.9 . tcp . 80 : 10.1.0.1 . 8080",
      "endpoints-1 203.0.113.9 . tcp . 80 : 10.1.0.2 . 8080",
      "internal 203.0.113.9 . tcp . 80 : goto choose-2",
      "local-endpoints-0 203.0.113.9 . tcp . 80 : 10.1.0.2 . 8080",
      "services 203.0.113.9 . tcp . 80 : goto choose-local-1",
    ],
  },
  {
    title: "external traffic with policy Local is dropped on a node without endpoints",
    service: proxyService("web", { type: "LoadBalancer", clusterIP: "10.96.0.5", externalTrafficPolicy: "Local" }, [
      "203.0.113.9",
    ]),
    endpoints: ["10.1.0.1 node=n2"],
    elements: [
      "endpoints-0 10.96.0.5 . tcp . 80 : 10.1.0.1 . 8080",
      "services 10.96.0.5 . tcp . 80 : goto choose-1",
      "endpoints-0 203.0.113.9 . tcp . 80 : 10.1.0.1 . 8080",
      "internal 203.0.113.9 . tcp . 80 : goto choose-1",
      "refused 203.0.113.9 . tcp . 80 : goto discard",
      "services 203.0.113.9 . tcp . 80 : goto choose-local-0",
    ],
  },
  {
    title: "internal traffic with policy Local is dropped on a node without endpoints",
    service: proxyService("web", { clusterIP: "10.96.0.5", internalTrafficPolicy: "Local" }),
    endpoints: ["10.1.0.1 node=n2"],
    elements: ["refused 10.96.0.5 . tcp . 80 : goto discard"],
  },
  {
    title: "internal traffic with policy Local goes to the node's endpoints",
    service: proxyService("web", { clusterIP: "10.96.0.5", internalTrafficPolicy: "Local" }),
    endpoints: ["10.1.0.1 node=n2", "10.1.0.2 node=n1"],
    elements: [
      "hairpins 10.1.0.2 . 10.1.0.2",
      "endpoints-0 10.96.0.5 . tcp . 80 : 10.1.0.2 . 8080",
      "services 10.96.0.5 . tcp . 80 : goto choose-1",
    ],
  },
  {
    title: "UDP services are as TCP services",
    service: proxyService("dns", { clusterIP: "10.96.0.5", ports: [{ port: 53, protocol: "UDP" }] }),
    endpoints: ["10.1.0.1"],
    protocol: "UDP",
    elements: ["endpoints-0 10.96.0.5 . udp . 53 : 10.1.0.1 . 8080", "services 10.96.0.5 . udp . 53 : goto choose-1"],
  },
];

/** `map key : value` of all added elements. */
function elementsOf(text: readonly string[]): readonly string[] {
  return text
    .flatMap((line) => {
      const [, map, items] = /^add element (\S+) \{ (.*) \}$/.exec(line) ?? [];
      return (items ?? "").split(", ").map((item) => `${map} ${item}`);
    })
    .filter((element) => element !== "cluster-ips 10.96.0.5" && !element.startsWith("undefined"));
}

for (const { title, service, endpoints, protocol = "TCP", elements } of tables) {
  t.test(title, async (t) => {
    const found = elementsOf(updated(["web", ofProtocol(service, protocol, ...endpoints)]));
    t.same([...found].sort(), [...elements].sort());
  });
}

t.test("headless services, ExternalName and services of other proxies have no rules", async (t) => {
  for (const spec of [{ clusterIP: "None" }, { type: "ExternalName", externalName: "a.example" }] as const) {
    const withoutLocal = { internal: 0, external: 0 };
    const none = { frontends: [], clusterIps: [], localAddresses: [], withoutLocal };
    t.same(frontends(proxyService("web", spec), "10.1.0.1"), none);
  }
  const labels = { "service.kubernetes.io/service-proxy-name": "other" };
  const foreign = { ...clusterIp, metadata: { ...clusterIp.metadata, labels } };
  t.same(frontends(foreign, "10.1.0.1").frontends, []);
});

t.test("the change of one endpoint changes elements and no rules", async (t) => {
  const table = new ServiceTable(options);
  table.update(new Map([["web", frontends(clusterIp, "10.1.0.1", "10.1.0.2")]])).text();
  t.same(lines(table.update(new Map([["web", frontends(clusterIp, "10.1.0.2")]])).text()), [
    "delete element endpoints-0 { 10.96.0.5 . tcp . 80 }",
    "delete element services { 10.96.0.5 . tcp . 80 }",
    "delete element endpoints-1 { 10.96.0.5 . tcp . 80 }",
    "add element endpoints-0 { 10.96.0.5 . tcp . 80 : 10.1.0.2 . 8080 }",
    "add element services { 10.96.0.5 . tcp . 80 : goto choose-1 }",
  ]);
  t.equal(table.update(new Map([["web", frontends(clusterIp, "10.1.0.2")]])).text(), "", "no change, no transaction");
});

t.test("a deleted service leaves no elements", async (t) => {
  const table = new ServiceTable(options);
  table.update(new Map([["web", frontends(clusterIp, "10.1.0.1 node=n1")]])).text();
  t.same(lines(table.update(new Map([["web", undefined]])).text()), [
    "delete element cluster-ips { 10.96.0.5 }",
    "delete element hairpins { 10.1.0.1 . 10.1.0.1 }",
    "delete element endpoints-0 { 10.96.0.5 . tcp . 80 }",
    "delete element services { 10.96.0.5 . tcp . 80 }",
  ]);
  t.equal(table.size, 0);
});

t.test("clients of a service with session affinity return to their endpoint", async (t) => {
  const service = proxyService("web", {
    clusterIP: "10.96.0.5",
    sessionAffinity: "ClientIP",
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
  });
  const table = new ServiceTable(options);
  const added = lines(table.update(new Map([["web", frontends(service, "10.1.0.1", "10.1.0.2")]])).text());
  const name = /goto (affinity-\S+) \}/.exec(added.at(-1) ?? "")?.[1] ?? "";
  const sets = added.flatMap((line) => /^add set (\S+) (.*)/.exec(line)?.slice(1, 3) ?? []);
  t.equal(sets.length, 4);
  t.equal(sets[1], "{ type ipv4_addr; flags dynamic, timeout; timeout 60s; }");
  const [first, , second] = sets;
  t.ok(added.includes(`add rule ${name} ip saddr @${first} goto ${first}`));
  t.ok(added.includes(`add rule ${name} numgen random mod 2 vmap { 0 : goto ${first}, 1 : goto ${second} }`));
  t.ok(added.includes(`add rule ${first} update @${first} { ip saddr } comment "shop/web:"`));
  t.ok(added.includes(`add rule ${first} meta l4proto tcp dnat ip to 10.1.0.1:8080`));
  const removed = lines(table.update(new Map([["web", frontends(service, "10.1.0.1")]])).text());
  t.notOk(
    removed.some((line) => line.includes(`set ${first}`)),
    "the clients of the other endpoint stay",
  );
  t.same(removed.slice(-3), [`flush chain ${second}`, `delete chain ${second}`, `delete set ${second}`]);
  const gone = lines(table.update(new Map([["web", undefined]])).text());
  t.ok(gone.includes(`delete set ${first}`));
});

t.test("clients of services with session affinity stay when the table is replaced", async (t) => {
  const service = proxyService("web", { clusterIP: "10.96.0.5", sessionAffinity: "ClientIP" });
  const table = new ServiceTable(options);
  table.update(new Map([["web", frontends(service, "10.1.0.1", "10.1.0.2")]]));
  const [first = "", second = ""] = table.affinitySets;
  const listed = (name: string, ...elem: readonly object[]) => ({ set: { family: "ip", name, table: "t", elem } });
  const json = JSON.stringify({
    nftables: [
      { metainfo: { version: "1.0.6" } },
      listed(first, { elem: { val: "10.1.0.9", expires: 286 } }, { elem: { val: "10.1.0.8", expires: 0 } }),
      listed("affinity-of-a-service-that-is-gone", { elem: { val: "10.1.0.7", expires: 9 } }),
      listed("cluster-ips"),
      { set: { family: "ip", name: second, table: "other", elem: [{ elem: { val: "10.1.0.6", expires: 9 } }] } },
    ],
  });
  const text = table.rebuild(parseAffinityClients(json, "t"));
  t.ok(text.endsWith(`add element ip t ${first} { 10.1.0.9 expires 286s }\n`));
  t.equal(text.split(" expires ").length, 2);
});

t.test("sources outside of loadBalancerSourceRanges are dropped", async (t) => {
  const spec = { type: "LoadBalancer", clusterIP: "10.96.0.5", loadBalancerSourceRanges: ["198.51.100.0/24"] } as const;
  const added = updated(["web", frontends(proxyService("web", spec, ["203.0.113.9"]), "10.1.0.1")]);
  const rule = added.find((line) => line.startsWith("add rule sources-"));
  t.match(rule, /ip saddr != \{ 198\.51\.100\.0\/24 \} drop$/);
  const ruleOf = (loadBalancerSourceRanges: readonly string[]): string | undefined =>
    updated([
      "web",
      frontends(proxyService("web", { ...spec, loadBalancerSourceRanges }, ["203.0.113.9"]), "10.1.0.1"),
    ]).find((line) => line.startsWith("add rule sources-"));
  t.match(
    ruleOf(["192.0.2.0/24"]),
    /ip saddr != \{ 192\.0\.2\.0\/24, 203\.0\.113\.9 \} drop$/,
    "with the node's address",
  );
  t.equal(ruleOf(["2001:db8::/32"]), undefined, "ranges of the other IP family restrict nothing");
  t.ok(added.some((line) => /^add element restricted \{ 203\.0\.113\.9 \. tcp \. 80 : goto sources-/.test(line)));
  const all = { ...spec, loadBalancerSourceRanges: ["0.0.0.0/0"] };
  const open = updated(["web", frontends(proxyService("web", all, ["203.0.113.9"]), "10.1.0.1")]);
  t.notOk(open.some((line) => line.includes("restricted")));
});

t.test("an address that two services want stays with the first until it leaves", async (t) => {
  const [a, b] = ["a", "b"].map((name, index) =>
    frontends(
      proxyService(name, { clusterIP: `10.96.0.${5 + index}`, externalIPs: ["198.51.100.7"] }),
      `10.1.0.${index}`,
    ),
  );
  const key = "198.51.100.7 . tcp . 80";
  const table = new ServiceTable(options);
  const both = table
    .update(
      new Map([
        ["a", a],
        ["b", b],
      ]),
    )
    .text();
  t.match(both, `${key} : 10.1.0.0 . 8080`);
  t.notMatch(both, `${key} : 10.1.0.1 . 8080`);
  t.same(table.conflicts(), [{ frontend: key, owner: "a", others: ["b"] }]);
  const inherited = table.update(new Map([["a", undefined]])).text();
  t.match(inherited, `${key} : 10.1.0.1 . 8080`);
  t.same(table.conflicts(), []);
  const swapped = new ServiceTable(options);
  swapped.update(
    new Map([
      ["a", a],
      ["b", b],
    ]),
  );
  const together = swapped
    .update(
      new Map<string, ServiceFrontends | undefined>([
        ["b", b],
        ["a", undefined],
      ]),
    )
    .text();
  t.match(together, `${key} : 10.1.0.1 . 8080`, "also if both change at once");
});

t.test("rebuild() replaces the table by one with all services", async (t) => {
  const table = new ServiceTable(options);
  table.update(new Map([["web", frontends(clusterIp, "10.1.0.1")]]));
  const text = table.rebuild();
  t.ok(text.startsWith("add table ip t\ndelete table ip t\n"));
  t.match(text, "elements = { 10.96.0.0/16 }");
  t.match(text, "add map ip t endpoints-0");
  t.match(text, "add element ip t services { 10.96.0.5 . tcp . 80 : goto choose-1 }");
});

t.test("IPv6 services have a table of their own", async (t) => {
  const six = { family: "IPv6", table: "t", clusterCidrs: [], serviceCidrs: ["fd00:96::/112"] } as const;
  const service = proxyService("web", {
    clusterIP: "fd00:96::5",
    clusterIPs: ["fd00:96::5"],
    sessionAffinity: "ClientIP",
  });
  const slice = readSlice(proxySlice("web", ["fd00:1::1"]));
  const found = computeFrontends(service, slice === undefined ? [] : [slice], "IPv6", node);
  const table = new ServiceTable(six);
  const text = table.update(new Map([["web", found]])).text();
  t.match(text, "dnat ip6 to [fd00:1::1]:8080");
  t.match(text, "add element ip6 t services { fd00:96::5 . tcp . 80 : goto affinity-");
  t.match(table.rebuild(), "table ip6 t {");
});
