import t, { type Test } from "tap";
import { ValueError, type ValueType } from "../flag.ts";
import { parseDuration, printDuration } from "./duration.ts";
import { gateSettings } from "./gate-settings.ts";
import { strings } from "./list.ts";
import { vmodule } from "./logging.ts";
import { minimumReclaim, pairs, qosReserved, reserved, thresholds } from "./map.ts";
import { cidrs, nodeIps, podCidr, portRange } from "./network.ts";
import { cpuSet, headers, nodeLabels, reservedMemory, taints } from "./node.ts";
import { float, int32 } from "./number.ts";
import { bytes, quantityNumber } from "./quantity.ts";
import { bool, version } from "./text.ts";
import { sniCertificates, suites } from "./tls.ts";

function refuses<T>(t: Test, type: ValueType<T>, texts: readonly string[]): void {
  for (const text of texts) t.throws(() => type.parse(text), ValueError, JSON.stringify(text));
}

t.test("parseDuration() reads Go's spellings and printDuration() writes them", async (t) => {
  const cases: readonly [string, number, string][] = [
    ["2m0s", 120_000, "2m0s"],
    ["90s", 90_000, "1m30s"],
    ["1.5h", 5_400_000, "1h30m0s"],
    ["100ms", 100, "100ms"],
    ["1500ms", 1500, "1.5s"],
    ["250us", 0.25, "250µs"],
    ["3ns", 3e-6, "3ns"],
    ["0", 0, "0s"],
    ["-1m", -60_000, "-1m0s"],
    ["4h", 14_400_000, "4h0m0s"],
    [".5s", 500, "500ms"],
  ];
  for (const [text, ms, printed] of cases) {
    t.equal(parseDuration(text), ms, text);
    t.equal(printDuration(ms), printed, text);
  }
  for (const text of ["", "5", "1 s", "s", "1d", "--1s", "1s-2s", "9999999999h"])
    t.equal(parseDuration(text), undefined, text);
});

t.test("bytes() reads quantities and prints the largest binary unit", async (t) => {
  const type = bytes("quantity");
  t.equal(type.parse("10Mi"), 10_485_760);
  t.equal(type.print(10_485_760), "10Mi");
  t.equal(type.parse("1K"), 1000);
  t.equal(type.parse("2Ki"), 2048);
  t.equal(type.parse("3M"), 3_000_000);
  t.equal(type.print(0), "0");
  refuses(t, type, ["", "ten", "1.5", "-1", "1KiB", "1e400"]);
  t.equal(quantityNumber("500m"), 0.5);
  t.equal(quantityNumber("2e3"), 2000);
});

t.test("int32() and float() keep their bounds", async (t) => {
  t.equal(int32({ min: -1000, max: 1000 }).parse("-999"), -999);
  refuses(t, int32(), ["", "1.0", "0x10", "2147483648", "1e3", " 1"]);
  refuses(t, float({ min: 0, max: 0.02 }), ["0.021", "-0.1", "NaN", "Infinity"]);
});

t.test("bool reads what Go reads", async (t) => {
  for (const text of ["1", "t", "TRUE", "True"]) t.equal(bool.parse(text), true, text);
  refuses(t, bool, ["yes", "on", "", "tRUE"]);
});

t.test("version takes true, raw and a version to report", async (t) => {
  t.equal(version.parse("v1.33.4-site.1"), "v1.33.4-site.1");
  t.equal(version.parse("false"), "");
  refuses(t, version, ["1.33", "v1", "latest"]);
});

t.test("strings() splits as CSV does", async (t) => {
  t.same(strings().parse('a,"b,c",""'), ["a", "b,c", ""]);
  t.same(strings().parse(""), []);
  refuses(t, strings(), ['"open']);
  refuses(t, strings({ choices: ["a"] }), ["b"]);
});

t.test("pairs() keeps = in values", async (t) => {
  t.same(pairs().parse("a=b=c"), { a: "b=c" });
  refuses(t, pairs(), ["a", "=b"]);
});

t.test("reserved(), qosReserved and thresholds check names and quantities", async (t) => {
  t.same(reserved("string").parse("cpu=500m,memory=1Gi"), { cpu: "500m", memory: "1Gi" });
  refuses(t, reserved("string"), ["gpu=1", "cpu=-1", "cpu="]);
  refuses(t, qosReserved, ["memory=101%", "cpu=5%"]);
  t.same(thresholds.parse("memory.available<100Mi,nodefs.available<10%"), {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
  });
  refuses(t, thresholds, ["memory.available=1Gi", "memory<1Gi", "memory.available<110%", "memory.available<0Mi"]);
  t.same(thresholds.parse("imagefs.available<0%"), { "imagefs.available": "0%" }, "no threshold at all");
  refuses(t, minimumReclaim, ["memory.available=0%", "memory.available=-1"]);
  t.same(minimumReclaim.parse("memory.available=0"), { "memory.available": "0" });
});

t.test("nodeLabels allows other domains, and of svc.io only prefixes and names that a node may set", async (t) => {
  for (const text of [
    "disk=ssd",
    "example.com/a=b",
    "node.svc.io/x=1",
    "team.node.svc.io/x=1",
    "svclet.svc.io/x=1",
    "svc.io/hostname=n",
    "kubernetes.io/os=linux",
    "node.kubernetes.io/x=1",
    "notsvc.io/x=1",
  ]) {
    t.ok(nodeLabels.parse(text), text);
  }
  refuses(t, nodeLabels, [
    "svc.io/role=x",
    "node-role.svc.io/master=",
    "kubernetes.io/role=x",
    "a b=c",
    "a=b c",
    "a/b/c=d",
  ]);
});

t.test("taints reads key=value:Effect, with or without a value", async (t) => {
  t.same(taints.parse("a=b:NoSchedule,c=:NoExecute,d:NoExecute"), [
    { key: "a", value: "b", effect: "NoSchedule" },
    { key: "c", value: "", effect: "NoExecute" },
    { key: "d", value: "", effect: "NoExecute" },
  ]);
  refuses(t, taints, ["a=b", "a=b:Never", ":NoSchedule"]);
});

t.test("reservedMemory, cpuSet and headers parse their formats", async (t) => {
  t.same(reservedMemory.parse("0:memory=1Gi,hugepages-1M=2Gi"), [
    { numaNode: 0, limits: { memory: "1Gi", "hugepages-1M": "2Gi" } },
  ]);
  refuses(t, reservedMemory, ["memory=1Gi", "0:cpu=1", "0:memory"]);
  refuses(t, cpuSet, ["a", "3-1", "1,,2"]);
  t.same(headers.parse("a:1,b:x:y,a:2"), { a: ["1", "2"], b: ["x:y"] });
  refuses(t, headers, ["a", ":b", "a b:c"]);
});

t.test("network types check addresses and ranges", async (t) => {
  t.same(nodeIps.parse("10.0.0.1,fd00::1"), ["10.0.0.1", "fd00::1"]);
  refuses(t, nodeIps, ["10.0.0.1,10.0.0.2", "010.1.1.1", "a"]);
  refuses(t, cidrs, ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/8,10.1.0.0/16"]);
  refuses(t, podCidr, ["fd00::/64"]);
  t.same(portRange.parse("30000-32767"), { first: 30_000, last: 32_767 });
  refuses(t, portRange, ["1", "0-5", "5-4", "1-70000"]);
});

t.test("suites(), sniCertificates, vmodule and gateSettings() refuse unknown values", async (t) => {
  refuses(t, suites("strings"), ["TLS_NULL"]);
  t.same(sniCertificates.parse("a,b:c,*.d"), [{ certFile: "a", keyFile: "b", names: ["c", "*.d"] }]);
  refuses(t, sniCertificates, ["a", "a,b,c", "a,b:"]);
  t.same(vmodule.parse("pod*=4"), [{ pattern: "pod*", level: 4 }]);
  refuses(t, vmodule, ["a", "a=b", "=1", "a=-1"]);
  t.same(gateSettings("x", "svc").parse("svc:A=true,B=False"), { A: true, B: false });
  refuses(t, gateSettings("x", "svc"), ["A", "A=1", "kube:A=true"]);
  refuses(t, gateSettings("x"), ["svc:A=true"]);
});
