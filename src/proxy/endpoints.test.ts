import t from "tap";
import { proxyService, proxySlice } from "../testing/proxy/objects.ts";
import { chooseEndpoints, readSlice } from "./endpoints.ts";
import { computeFrontends } from "./frontends.ts";

const port = { name: "", protocol: "TCP" };

function choose(endpoints: readonly string[], zone?: string) {
  const slice = readSlice(proxySlice("web", endpoints));
  return chooseEndpoints(slice === undefined ? [] : [slice], "IPv4", port, { name: "n1", zone });
}

const cases: readonly {
  readonly title: string;
  readonly endpoints: readonly string[];
  readonly zone?: string;
  readonly cluster: readonly string[];
  readonly local?: readonly string[];
}[] = [
  { title: "no endpoints", endpoints: [], cluster: [] },
  {
    title: "ready endpoints get traffic, those of the node are local",
    endpoints: ["10.1.0.2 node=n2", "10.1.0.1 node=n1", "10.1.0.3 unready"],
    cluster: ["10.1.0.1 . 8080", "10.1.0.2 . 8080"],
    local: ["10.1.0.1 . 8080"],
  },
  {
    title: "terminating endpoints that still serve get traffic while none is ready",
    endpoints: ["10.1.0.1 node=n1 terminating serving", "10.1.0.2 node=n2 terminating", "10.1.0.3 unready"],
    cluster: ["10.1.0.1 . 8080"],
    local: ["10.1.0.1 . 8080"],
  },
  {
    title: "a terminating endpoint of the node is local even if others are ready",
    endpoints: ["10.1.0.1 node=n1 terminating serving", "10.1.0.2 node=n2"],
    cluster: ["10.1.0.2 . 8080"],
    local: ["10.1.0.1 . 8080"],
  },
  {
    title: "hints for the node's zone restrict the endpoints",
    endpoints: ["10.1.0.1 zone=za", "10.1.0.2 zone=zb"],
    zone: "zb",
    cluster: ["10.1.0.2 . 8080"],
  },
  {
    title: "hints are ignored unless all endpoints have one",
    endpoints: ["10.1.0.1 zone=za", "10.1.0.2"],
    zone: "za",
    cluster: ["10.1.0.1 . 8080", "10.1.0.2 . 8080"],
  },
  {
    title: "hints are ignored when none is for the node's zone",
    endpoints: ["10.1.0.1 zone=za"],
    zone: "zc",
    cluster: ["10.1.0.1 . 8080"],
  },
  {
    title: "hints of terminating endpoints are ignored: all that serve get traffic while none is ready",
    endpoints: ["10.1.0.1 zone=za terminating serving", "10.1.0.2 zone=zb terminating serving", "10.1.0.3 unready"],
    zone: "za",
    cluster: ["10.1.0.1 . 8080", "10.1.0.2 . 8080"],
  },
  {
    title: "hints are ignored on a node without a zone",
    endpoints: ["10.1.0.1 zone=za", "10.1.0.2 zone=zb"],
    cluster: ["10.1.0.1 . 8080", "10.1.0.2 . 8080"],
  },
];

for (const { title, endpoints, zone, cluster, local = [] } of cases) {
  t.test(`chooseEndpoints(): ${title}`, async (t) => {
    t.same(choose(endpoints, zone), { cluster, local, exists: cluster.length > 0 });
  });
}

t.test("readSlice() leaves out slices without a service and those with names", async (t) => {
  const slice = proxySlice("web", ["10.1.0.1"]);
  t.equal(readSlice({ ...slice, metadata: { name: "x" } }), undefined);
  t.equal(readSlice({ ...slice, addressType: "FQDN" }), undefined);
});

t.test(
  "computeFrontends() uses a bounded number of endpoints of a service with many ports, ready ones first",
  async (t) => {
    const numbers = Array.from({ length: 5000 }, (_, i) => i + 1);
    const ports = numbers.map((number) => ({ name: `p${number}`, port: number, protocol: "TCP" as const }));
    const endpoints = Array.from({ length: 1000 }, (_, i) => `10.1.${i >> 8}.${i & 255}${i < 500 ? " unready" : ""}`);
    const slice = readSlice({ ...proxySlice("web", endpoints), ports })!;
    const service = proxyService("web", { clusterIP: "10.3.0.1", ports });
    const { frontends } = computeFrontends(service, [slice], "IPv4", { name: "n1", zone: undefined, addresses: [] });
    t.equal(frontends.length, 5000);
    const used = frontends.map(({ action }) => (action.type === "forward" ? action.endpoints : []));
    t.ok(used.every(({ length }) => length === 5));
    t.equal(used[6]?.[0], "10.1.1.244 . 7");
  },
);

t.test("readSlice() leaves out ports that nft rejects with the rules of all services", async (t) => {
  const slice = proxySlice("web", ["10.1.0.1"]);
  const ports = [-1, 80, 65_535, 65_536].map((number) => ({ name: `p${number}`, port: number }));
  t.same(
    readSlice({ ...slice, ports })?.ports.map(({ port: number }) => number),
    [80, 65_535],
  );
});

t.test("readSlice() takes unknown conditions as ready and not terminating", async (t) => {
  const slice = proxySlice("web", ["10.1.0.1"]);
  const [endpoint] = readSlice({ ...slice, endpoints: [{ addresses: ["10.1.0.1"] }] })?.endpoints ?? [];
  t.match(endpoint, { ready: true, serving: true, terminating: false });
});

t.test("a terminating endpoint of which is unknown whether it serves gets traffic while none is ready", async (t) => {
  const slice = proxySlice("web", ["10.1.0.1"]);
  const conditions = { ready: false, terminating: true };
  const read = readSlice({ ...slice, endpoints: [{ addresses: ["10.1.0.1"], conditions }] })!;
  t.same(chooseEndpoints([read], "IPv4", port, { name: "n1", zone: undefined }).cluster, ["10.1.0.1 . 8080"]);
});

t.test("an endpoint in two slices, ready in one of them, is chosen once", async (t) => {
  const slices = [proxySlice("web", ["10.1.0.1"]), proxySlice("web", ["10.1.0.1 unready"])];
  for (const order of [slices, slices.toReversed()]) {
    const read = order.flatMap((slice) => readSlice(slice) ?? []);
    t.same(chooseEndpoints(read, "IPv4", port, { name: "n1", zone: undefined }).cluster, ["10.1.0.1 . 8080"]);
  }
});

t.test("chooseEndpoints() prefers endpoints with a hint for the node, then those for its zone", async (t) => {
  const slice = readSlice({
    metadata: { namespace: "default", labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    ports: [{ name: "", protocol: "TCP", port: 80 }],
    endpoints: ["n1", "n2"].map((name, i) => ({
      addresses: [`10.1.0.${i + 1}`],
      nodeName: name,
      hints: { forZones: [{ name: "za" }], forNodes: [{ name }] },
    })),
  });
  const of = (name: string) => chooseEndpoints([slice!], "IPv4", port, { name, zone: "za" }).cluster;
  t.same(of("n2"), ["10.1.0.2 . 80"]);
  t.same(of("n3"), ["10.1.0.1 . 80", "10.1.0.2 . 80"]);
});
