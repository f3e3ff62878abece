import t from "tap";
import { checkNodeIps, NodeIps, resolveNodeIps } from "./node-ips.ts";

t.test("NodeIps.refresh() reads the host's address again, and keeps the last one when there is none", async (t) => {
  let found: readonly string[] = [];
  const ips = await NodeIps.open([], async () => found);
  t.same(ips.current, ["127.0.0.1"]);
  for (const [next, current] of [
    [["192.0.2.1", "192.0.2.3"], "192.0.2.1"],
    [["198.51.100.7"], "198.51.100.7"],
    [[], "198.51.100.7"],
  ] as const) {
    found = next;
    t.same(await ips.refresh(), [current]);
    t.same(ips.current, [current]);
  }
});

t.test("NodeIps returns configured addresses unchanged", async (t) => {
  const ips = await NodeIps.open(["192.0.2.9"], async () => ["192.0.2.1"]);
  t.same(await ips.refresh(), ["192.0.2.9"]);
});

t.test("resolveNodeIps() replaces unspecified addresses by the host's of the family, if it has one", async (t) => {
  const both = ["192.0.2.1", "2001:db8::1"];
  t.same(resolveNodeIps(["::"], both), ["2001:db8::1"]);
  t.same(resolveNodeIps(["0.0.0.0"], both), ["192.0.2.1"]);
  t.same(resolveNodeIps(["0.0.0.0", "::"], both), both);
  t.same(resolveNodeIps(["::"], ["192.0.2.1"]), ["192.0.2.1"]);
  t.same(resolveNodeIps(["::"], []), ["127.0.0.1"]);
});

t.test("checkNodeIps() refuses addresses that the host has not", async (t) => {
  const entry = { netmask: "", mac: "", internal: false, cidr: null };
  const interfaces = {
    eth0: [
      { ...entry, address: "192.0.2.1", family: "IPv4" as const },
      { ...entry, address: "2001:db8::1", family: "IPv6" as const, scopeid: 0 },
    ],
  };
  for (const own of [[], ["192.0.2.1"], ["192.0.2.1", "2001:db8:0::1"], ["::"], ["0.0.0.0"]]) {
    t.equal(checkNodeIps(own, interfaces), undefined, own.join());
  }
  for (const other of [["192.0.2.2"], ["192.0.2.1", "2001:db8::2"]]) {
    t.throws(() => checkNodeIps(other, interfaces), /not found in the host's network interfaces/, other.join());
  }
});
