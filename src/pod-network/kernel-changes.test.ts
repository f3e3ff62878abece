import t from "tap";
import { findChanges } from "./kernel-changes.ts";
import type { KernelState } from "./kernel-state.ts";
import { isPodRoute, nameSuffix, networkNames } from "./network-names.ts";
import type { NetworkPlan } from "./network-plan.ts";

const names = networkNames(undefined);
const device = { mac: "02:00:00:00:00:01", local: "192.0.2.1", mtu: 1450, addresses: ["10.244.0.0/32"] };
const direct = { destination: "10.244.1.0/24", gateway: "192.0.2.2", device: "eth0" };
const tunneled = { destination: "10.244.2.0/24", gateway: "10.244.2.0", device: "svc-vxlan" };
const plan: NetworkPlan = {
  device,
  routes: [direct, tunneled],
  neighbors: [{ address: "10.244.2.0", mac: "02:00:00:00:00:03" }],
  forwarding: [{ mac: "02:00:00:00:00:03", address: "198.51.100.3" }],
  problems: [],
};
const nothing: KernelState = { device: undefined, routes: [], neighbors: [], forwarding: [], nextHops: new Map() };
const complete: KernelState = { ...nothing, ...plan, device: { ...device, isUp: true, isForeign: false } };

t.test("everything is made, the device first and the routes last", async (t) => {
  t.same(findChanges(plan, nothing, names), {
    ip: [
      "link add svc-vxlan address 02:00:00:00:00:01 mtu 1450 type vxlan id 84 dstport 8472 local 192.0.2.1 nolearning",
      "link set svc-vxlan addrgenmode none",
      "link set svc-vxlan up",
      "address add 10.244.0.0/32 dev svc-vxlan",
      "neigh replace 10.244.2.0 lladdr 02:00:00:00:00:03 dev svc-vxlan nud permanent",
      "route replace 10.244.1.0/24 via 192.0.2.2 dev eth0 proto 84 metric 8400",
      "route replace 10.244.2.0/24 via 10.244.2.0 dev svc-vxlan onlink proto 84 metric 8400",
    ],
    bridge: ["fdb append 02:00:00:00:00:03 dev svc-vxlan dst 198.51.100.3 self permanent"],
  });
});

t.test("nothing is done when the kernel has everything", async (t) => {
  t.same(findChanges(plan, complete, names), { ip: [], bridge: [] });
});

t.test("single deviations are corrected", async (t) => {
  const changes = (state: Partial<KernelState>) => findChanges(plan, { ...complete, ...state }, names);
  t.same(changes({ routes: [tunneled] }).ip, [
    "route replace 10.244.1.0/24 via 192.0.2.2 dev eth0 proto 84 metric 8400",
  ]);
  t.same(
    changes({ routes: [{ ...direct, gateway: "192.0.2.9" }, tunneled] }).ip,
    ["route replace 10.244.1.0/24 via 192.0.2.2 dev eth0 proto 84 metric 8400"],
    "without a time in which there is none",
  );
  t.same(changes({ routes: [direct, tunneled, { ...direct, destination: "10.244.9.0/24" }] }).ip, [
    "route delete 10.244.9.0/24 proto 84 metric 8400",
  ]);
  t.same(changes({ forwarding: [{ mac: "02:00:00:00:00:03", address: "198.51.100.4" }] }).bridge, [
    "fdb delete 02:00:00:00:00:03 dev svc-vxlan dst 198.51.100.4 self",
    "fdb append 02:00:00:00:00:03 dev svc-vxlan dst 198.51.100.3 self permanent",
  ]);
  const neighbors = [{ address: "10.244.2.0", mac: "02:00:00:00:00:04" }];
  t.same(changes({ neighbors }).ip, ["neigh replace 10.244.2.0 lladdr 02:00:00:00:00:03 dev svc-vxlan nud permanent"]);
  t.same(changes({ neighbors: [...plan.neighbors, { address: "10.244.9.0", mac: "02:00:00:00:00:04" }] }).ip, [
    "neigh delete 10.244.9.0 dev svc-vxlan",
  ]);
  const has = { ...device, isUp: true, isForeign: false };
  t.same(changes({ device: { ...has, mtu: 1500 } }).ip, ["link set svc-vxlan mtu 1450"]);
  t.same(changes({ device: { ...has, isUp: false } }).ip, ["link set svc-vxlan up"]);
  t.same(changes({ device: { ...has, addresses: ["10.244.7.0/32"] } }).ip, [
    "address add 10.244.0.0/32 dev svc-vxlan",
    "address delete 10.244.7.0/32 dev svc-vxlan",
  ]);
});

t.test("a device with another address or other settings is replaced, with all that it had", async (t) => {
  for (const change of [{ local: "192.0.2.7" }, { mac: "02:00:00:00:00:07" }, { isForeign: true }]) {
    const other = { ...device, isUp: true, isForeign: false, ...change };
    const { ip, bridge } = findChanges(plan, { ...complete, device: other }, names);
    t.equal(ip[0], "link delete svc-vxlan");
    t.equal(ip.length + bridge.length, 1 + 7 - 0 + 1 - 1, "all but the route of the other interface");
  }
});

t.test("without a plan everything is removed", async (t) => {
  t.same(findChanges(undefined, complete, names), {
    ip: ["link delete svc-vxlan", "route delete 10.244.1.0/24 proto 84 metric 8400"],
    bridge: [],
  });
  t.same(findChanges(undefined, nothing, names), { ip: [], bridge: [] });
});

t.test("clusters on one host have different names and metrics", async (t) => {
  t.equal(nameSuffix("/var/lib/svc", "/var/lib/svc"), undefined);
  const other = networkNames(nameSuffix("/tmp/a", "/var/lib/svc"));
  for (const name of [other.bridge, other.device]) t.match(name, /^svc.{1,12}$/);
  t.not(other.table, names.table);
  t.not(other.metric, names.metric);
  t.ok(isPodRoute(names.metric) && isPodRoute(other.metric));
  t.notOk(isPodRoute(0) || isPodRoute(100));
});
