import t from "tap";
import { makeExternalName, makeService, makeSlice, type TypeName, types } from "../../testing/dns/queries.ts";
import type { ResourceRecord } from "../wire/response.ts";
import { RESPONSE_RECORDS_MAX } from "../wire/response.ts";
import { ClusterRecords } from "./cluster-records.ts";
import { ClusterZone, type ZoneAnswer } from "./cluster-zone.ts";
import { parseReverseName } from "./reverse-name.ts";

const SERIAL = 1;
const zone = new ClusterZone({ domain: "cluster.local", addresses: ["10.3.0.10", "fd00::a"] });
const records = new ClusterRecords();
for (const service of [
  makeService("default/kubernetes", "10.3.0.1", "https/TCP/443"),
  makeService("default/dual", "10.3.0.2,fd00::2", "http/TCP/80", "dns/UDP/53", "/TCP/81"),
  makeService("default/headless", "None", "https/TCP/443"),
  makeService("default/unready", "None", "https/TCP/443"),
  makeService("default/dual-headless", "None"),
  makeExternalName("default/foo", "www.example.com."),
  makeExternalName("default/ip", "192.0.2.9"),
  makeExternalName("default/long", `${"a".repeat(64)}.example`),
]) {
  records.putService(service);
}
for (const slice of [
  makeSlice("default/kubernetes", "kubernetes", "https/TCP/6443", "192.0.2.2"),
  makeSlice("default/headless", "h1", "https/TCP/8443", "my-pet=10.3.0.100", "10.3.0.101", "!gone=10.3.0.102"),
  makeSlice("default/headless", "h2", "https/TCP/8443", "my-pet=10.3.0.103"),
  makeSlice("default/unready", "u1", "https/TCP/8443", "!10.3.0.110"),
  makeSlice("default/dual-headless", "d4", "", "web-0=10.3.0.120"),
  makeSlice("default/dual-headless", "d6", "", "web-0=fd00::120"),
  makeSlice("default/orphan", "o1", "", "10.3.0.130"),
]) {
  records.putSlice(slice, undefined);
}

function textOf({ name, type, data }: ResourceRecord): string {
  const value = typeof data === "string" ? data : type === "SRV" ? srvText(data) : JSON.stringify(data);
  return `${name} ${type} ${value}`.replaceAll(".cluster.local", "").replaceAll(".default.svc", ".d");
}

function srvText(data: ResourceRecord["data"]): string {
  const { priority, weight, port, target } = data as { priority: number; weight: number; port: number; target: string };
  return `${priority} ${weight} ${port} ${target}`;
}

/** The answers; `NODATA` or `NXDOMAIN`; additional records after a plus sign; the target that is to be resolved. */
function show({ rcode, answers, additionals, target }: ZoneAnswer): readonly string[] {
  if (rcode === 3) return ["NXDOMAIN"];
  if (answers.length === 0) return ["NODATA"];
  return [
    ...answers.map(textOf),
    ...additionals.map((each) => `+ ${textOf(each)}`),
    ...(target === undefined ? [] : [`> ${target}`]),
  ];
}

/** Names without `cluster.local`; `.d` stands for `.default.svc`. */
const table: readonly (readonly [type: TypeName, name: string, ...answer: readonly string[]])[] = [
  ["TXT", "dns-version", "dns-version TXT 1.1.0"],
  ["A", "dns-version", "NODATA"],
  ["A", "kubernetes.d", "kubernetes.d A 10.3.0.1"],
  ["AAAA", "kubernetes.d", "NODATA"],
  ["TXT", "kubernetes.d", "NODATA"],
  ["HTTPS", "kubernetes.d", "NODATA"],
  ["ANY", "kubernetes.d", 'kubernetes.d HINFO {"cpu":"RFC8482","os":""}'],
  ["A", "192-0-2-2.kubernetes.d", "192-0-2-2.kubernetes.d A 192.0.2.2"],
  ["A", "dual.d", "dual.d A 10.3.0.2"],
  ["AAAA", "dual.d", "dual.d AAAA fd00::2"],
  [
    "SRV",
    "_https._tcp.kubernetes.d",
    "_https._tcp.kubernetes.d SRV 0 100 443 kubernetes.d",
    "+ kubernetes.d A 10.3.0.1",
  ],
  ["SRV", "_dns._udp.dual.d", "_dns._udp.dual.d SRV 0 100 53 dual.d", "+ dual.d A 10.3.0.2", "+ dual.d AAAA fd00::2"],
  ["A", "_https._tcp.kubernetes.d", "NODATA"],
  ["SRV", "_https._udp.kubernetes.d", "NXDOMAIN"],
  ["SRV", "_http._tcp.kubernetes.d", "NXDOMAIN"],
  ["SRV", "_._tcp.dual.d", "NXDOMAIN"],
  ["SRV", "_tcp.dual.d", "NODATA"],
  ["SRV", "_sctp.dual.d", "NXDOMAIN"],
  ["SRV", "http._tcp.dual.d", "NXDOMAIN"],
  ["SRV", "x._http._tcp.dual.d", "NXDOMAIN"],
  [
    "SRV",
    "dual.d",
    "dual.d SRV 0 33 80 dual.d",
    "dual.d SRV 0 33 53 dual.d",
    "dual.d SRV 0 33 81 dual.d",
    "+ dual.d A 10.3.0.2",
    "+ dual.d AAAA fd00::2",
  ],
  ["A", "headless.d", "headless.d A 10.3.0.100", "headless.d A 10.3.0.101", "headless.d A 10.3.0.103"],
  ["AAAA", "headless.d", "NODATA"],
  ["A", "my-pet.headless.d", "my-pet.headless.d A 10.3.0.100", "my-pet.headless.d A 10.3.0.103"],
  ["A", "10-3-0-101.headless.d", "10-3-0-101.headless.d A 10.3.0.101"],
  ["A", "gone.headless.d", "NXDOMAIN"],
  ["A", "x.my-pet.headless.d", "NXDOMAIN"],
  [
    "SRV",
    "_https._tcp.headless.d",
    "_https._tcp.headless.d SRV 0 33 8443 my-pet.headless.d",
    "_https._tcp.headless.d SRV 0 33 8443 10-3-0-101.headless.d",
    "+ my-pet.headless.d A 10.3.0.100",
    "+ 10-3-0-101.headless.d A 10.3.0.101",
    "+ my-pet.headless.d A 10.3.0.103",
  ],
  ["A", "unready.d", "NXDOMAIN"],
  ["SRV", "_https._tcp.unready.d", "NXDOMAIN"],
  ["A", "dual-headless.d", "dual-headless.d A 10.3.0.120"],
  ["AAAA", "web-0.dual-headless.d", "web-0.dual-headless.d AAAA fd00::120"],
  ["A", "orphan.d", "NXDOMAIN"],
  ["A", "foo.d", "foo.d CNAME www.example.com", "> www.example.com"],
  ["CNAME", "foo.d", "foo.d CNAME www.example.com"],
  ["A", "x.foo.d", "NXDOMAIN"],
  ["A", "ip.d", "ip.d A 192.0.2.9"],
  ["A", "long.d", "NODATA"],
  ["A", "missing.d", "NXDOMAIN"],
  ["A", "default.svc", "NODATA"],
  ["A", "missing.svc", "NXDOMAIN"],
  ["A", "kubernetes.missing.svc", "NXDOMAIN"],
  ["A", "svc", "NODATA"],
  ["A", "pod", "NODATA"],
  ["A", "default.pod", "NODATA"],
  ["A", "10-244-0-7.default.pod", "10-244-0-7.default.pod A 10.244.0.7"],
  ["AAAA", "10-244-0-7.default.pod", "NODATA"],
  ["AAAA", "fd00--7.any.pod", "fd00--7.any.pod AAAA fd00::7"],
  ["A", "10-244-0-256.default.pod", "NXDOMAIN"],
  ["A", "x.10-244-0-7.default.pod", "NXDOMAIN"],
  ["A", "example", "NXDOMAIN"],
  ["A", "ns.dns", "ns.dns A 10.3.0.10"],
  ["A", "dns", "NODATA"],
  ["A", "x.dns", "NXDOMAIN"],
];

t.test("resolve() follows the DNS specification 1.1.0", async (t) => {
  for (const [type, short, ...answer] of table) {
    const name = `${short.replace(/\.d$/, ".default.svc")}.cluster.local`;
    t.ok(zone.contains(name));
    t.same(show(zone.resolve(records, name, types[type], SERIAL)), answer, `${type} ${short}`);
  }
});

t.test("resolve() answers for the domain itself", async (t) => {
  const at = (type: TypeName) => show(zone.resolve(records, "cluster.local", types[type], SERIAL));
  t.same(at("NS"), ["cluster.local NS ns.dns", "+ ns.dns A 10.3.0.10", "+ ns.dns AAAA fd00::a"]);
  t.match(at("SOA"), [/^cluster\.local SOA .*"serial":1/]);
  t.same(at("A"), ["NODATA"]);
  for (const name of ["cluster.local.example", "xcluster.local", "local", ""]) t.notOk(zone.contains(name), name);
});

t.test("resolveReverse() returns names of services and of endpoints of headless services", async (t) => {
  const of = (name: string, type: TypeName = "PTR") => {
    const answer = zone.resolveReverse(records, name, types[type]);
    return answer && show(answer).map((text) => text.replace(/^\S+ PTR /, ""));
  };
  t.same(of("1.0.3.10.in-addr.arpa"), ["kubernetes.d"]);
  t.same(of("100.0.3.10.in-addr.arpa"), ["my-pet.headless.d"]);
  t.same(of("101.0.3.10.in-addr.arpa"), ["10-3-0-101.headless.d"]);
  t.same(of("1.0.3.10.in-addr.arpa", "A"), ["NODATA"]);
  t.same(of(`2.${"0.".repeat(27)}0.0.d.f.ip6.arpa`), ["dual.d"]);
  for (const name of ["2.2.0.192.in-addr.arpa", "102.0.3.10.in-addr.arpa", "3.10.in-addr.arpa", "example.com"]) {
    t.equal(of(name), undefined, name);
  }
});

t.test("parseReverseName() accepts only names of one address", async (t) => {
  t.equal(parseReverseName("10.0.96.10.in-addr.arpa"), "10.96.0.10");
  t.equal(parseReverseName(`1.${"0.".repeat(30)}f.ip6.arpa`), "f000::1");
  for (const name of [
    "01.0.96.10.in-addr.arpa",
    "256.0.96.10.in-addr.arpa",
    "in-addr.arpa",
    "a.b.c.d.in-addr.arpa",
    `1.${"0.".repeat(29)}f.ip6.arpa`,
    `x.${"0.".repeat(30)}f.ip6.arpa`,
  ]) {
    t.equal(parseReverseName(name), undefined, name);
  }
});

t.test("resolve() returns no more records than a response can have, and only ports in range", async (t) => {
  const crowded = new ClusterRecords();
  const ports = Array.from({ length: 1000 }, (_, i) => `p${i}/TCP/${i + 1}`).join(" ");
  const endpoints = Array.from({ length: 1000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  crowded.putService(makeService("default/a", "None"));
  crowded.putSlice(makeSlice("default/a", "a-1", ports, ...endpoints), undefined);
  const { answers, additionals } = zone.resolve(crowded, "a.default.svc.cluster.local", types.SRV, SERIAL);
  t.ok(answers.length >= RESPONSE_RECORDS_MAX);
  t.ok(answers.length + additionals.length < 2 * RESPONSE_RECORDS_MAX, `${answers.length} of a million`);
  // Kubernetes validates no range of these.
  crowded.putService(makeService("default/b", "None"));
  crowded.putSlice(makeSlice("default/b", "b-1", "a/TCP/-1 b/TCP/65535 c/TCP/65536", "10.1.0.1"), undefined);
  const { answers: inRange } = zone.resolve(crowded, "b.default.svc.cluster.local", types.SRV, SERIAL);
  t.match(inRange, [{ data: { port: 65_535 } }]);
  t.equal(inRange.length, 1);
});

t.test("resolve() and resolveReverse() take as long for a service of 50,000 endpoints as for few", async (t) => {
  const crowded = new ClusterRecords();
  crowded.putService(makeService("default/a", "None"));
  for (let slice = 0; slice < 50; slice++) {
    const endpoints = Array.from({ length: 1000 }, (_, i) => `10.${slice}.${i >> 8}.${i & 255}`);
    crowded.putSlice(makeSlice("default/a", `a-${slice}`, "web/TCP/80", ...endpoints), undefined);
  }
  const name = "a.default.svc.cluster.local";
  const resolve = (label: string, type: number) => zone.resolve(crowded, `${label}${name}`, type, SERIAL).answers;
  const resolveAll = (): void => {
    t.ok(resolve("", types.A).length >= RESPONSE_RECORDS_MAX);
    t.same(resolve("", types.AAAA), []);
    t.match(resolve("10-49-3-1.", types.A), [{ data: "10.49.3.1" }]);
    t.same(resolve("10-60-3-1.", types.A), []);
    t.ok(resolve("_web._tcp.", types.SRV).length >= RESPONSE_RECORDS_MAX);
    t.match(zone.resolveReverse(crowded, "1.3.49.10.in-addr.arpa", types.PTR)?.answers, [
      { data: `10-49-3-1.${name}` },
    ]);
  };
  // Builds the indices.
  resolveAll();
  const began = process.cpuUsage();
  for (let round = 0; round < 20; round++) {
    resolve("10-49-3-1.", types.A);
    resolve("10-60-3-1.", types.A);
    zone.resolveReverse(crowded, "1.3.49.10.in-addr.arpa", types.PTR);
    resolve("", types.AAAA);
  }
  const ms = process.cpuUsage(began).user / 1000;
  // Each of these 80 went through all endpoints, which took 10 ms.
  t.ok(ms < 200, `${Math.round(ms)} ms`);
});

t.test("ClusterRecords counts the endpoints that share an address", async (t) => {
  const changing = new ClusterRecords();
  const reverse = () => [...changing.findByAddress("10.1.0.1")].map(({ name }) => name);
  const [first, second] = ["a-1", "a-2"].map((name) => makeSlice("default/a", name, "", "10.1.0.1", "10.1.0.1"));
  changing.putService(makeService("default/a", "None"));
  changing.putSlice(first!, undefined);
  changing.putSlice(second!, undefined);
  changing.deleteSlice(first!);
  t.same(reverse(), ["a"]);
  changing.putService(makeService("default/a", "10.3.0.1"));
  t.same(reverse(), []);
  changing.putService(makeService("default/a", "None"));
  t.same(reverse(), ["a"]);
  changing.deleteSlice(second!);
  t.same(reverse(), []);
});

t.test("ClusterRecords follows changes of services and slices in any order", async (t) => {
  const changing = new ClusterRecords();
  const at = (name: string) => show(zone.resolve(changing, `${name}.default.svc.cluster.local`, types.A, SERIAL));
  const reverse = (address: string) => [...changing.findByAddress(address)].map(({ name }) => name);
  const slice = makeSlice("default/a", "a-1", "", "10.1.0.1");
  changing.putSlice(slice, undefined);
  t.same([at("a"), reverse("10.1.0.1")], [["NXDOMAIN"], []]);
  changing.putService(makeService("default/a", "None"));
  t.same([at("a"), reverse("10.1.0.1")], [["a.d A 10.1.0.1"], ["a"]]);
  const next = makeSlice("default/a", "a-1", "", "10.1.0.2");
  changing.putSlice(next, slice);
  t.same([at("a"), reverse("10.1.0.1"), reverse("10.1.0.2")], [["a.d A 10.1.0.2"], [], ["a"]]);
  const moved = makeSlice("default/b", "a-1", "", "10.1.0.2");
  changing.putService(makeService("default/b", "None"));
  changing.putSlice(moved, next);
  t.same([at("a"), at("b"), reverse("10.1.0.2")], [["NXDOMAIN"], ["b.d A 10.1.0.2"], ["b"]]);
  changing.putService(makeService("default/b", "10.3.0.7"));
  t.same([at("b"), reverse("10.1.0.2"), reverse("10.3.0.7")], [["b.d A 10.3.0.7"], [], ["b"]]);
  const unlabelled = { ...moved, metadata: { ...moved.metadata, labels: {} } };
  changing.putSlice(unlabelled, moved);
  changing.deleteSlice(unlabelled);
  for (const name of ["a", "b"]) changing.deleteService(makeService(`default/${name}`, ""));
  t.same([[...changing.entries()], changing.hasNamespace("default"), reverse("10.3.0.7")], [[], false, []]);
  changing.putSlice({ ...slice, addressType: "FQDN" }, undefined);
  t.same([...changing.entries()], []);
});
