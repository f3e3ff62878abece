import t from "tap";
import { macOf, type NetworkNode, type NextHop, planNetwork } from "./network-plan.ts";

const node = (name: string, podCidr: string, ...addresses: readonly string[]): NetworkNode => ({
  name,
  podCidrs: podCidr.split(","),
  addresses,
});
const own = node("a", "10.244.0.0/24", "192.0.2.1");
const options = { mode: "auto", clusterCidrs: ["10.244.0.0/16", "fd00:244::/48"], device: "vx" } as const;
const near: NextHop = { device: "eth0", isOnLink: true, mtu: 1500 };
const far: NextHop = { device: "eth0", isOnLink: false, mtu: 1500 };
const hops = (...each: readonly (readonly [string, NextHop])[]) => new Map(each);

t.test("a node in the same network gets a route, another one the VXLAN device", async (t) => {
  const others = [node("c", "10.244.2.0/24", "198.51.100.3"), node("b", "10.244.1.0/24", "192.0.2.2")];
  t.same(planNetwork(own, others, hops(["192.0.2.2", near], ["198.51.100.3", far]), options), {
    device: { mac: macOf("a"), local: "192.0.2.1", mtu: 1450, addresses: ["10.244.0.0/32"] },
    routes: [
      { destination: "10.244.1.0/24", gateway: "192.0.2.2", device: "eth0" },
      { destination: "10.244.2.0/24", gateway: "10.244.2.0", device: "vx" },
    ],
    neighbors: [{ address: "10.244.2.0", mac: macOf("c") }],
    forwarding: [{ mac: macOf("c"), address: "198.51.100.3" }],
    problems: [],
  });
});

t.test("there is no device while all nodes are in the same network", async (t) => {
  const { device, problems } = planNetwork(
    own,
    [node("b", "10.244.1.0/24", "192.0.2.2")],
    hops(["192.0.2.2", near]),
    options,
  );
  t.same([device, problems], [undefined, []]);
});

t.test("mode vxlan takes no direct routes", async (t) => {
  const others = [node("b", "10.244.1.0/24", "192.0.2.2")];
  const { routes } = planNetwork(own, others, hops(["192.0.2.2", near]), { ...options, mode: "vxlan" });
  t.same(routes, [{ destination: "10.244.1.0/24", gateway: "10.244.1.0", device: "vx" }]);
});

t.test("the MTU of the device fits the narrowest way", async (t) => {
  const others = [node("b", "10.244.1.0/24", "198.51.100.2"), node("c", "10.244.2.0/24", "203.0.113.3")];
  const { device } = planNetwork(
    own,
    others,
    hops(["198.51.100.2", { ...far, mtu: 9000 }], ["203.0.113.3", { ...far, mtu: 1400 }]),
    options,
  );
  t.equal(device?.mtu, 1350);
});

t.test("nodes of two IP families have one device for both", async (t) => {
  const dual = node("a", "10.244.0.0/24,fd00:244::/64", "192.0.2.1", "2001:db8::1");
  const others = [node("b", "10.244.1.0/24,fd00:244:0:1::/64", "198.51.100.2", "2001:db8::2")];
  const ways = hops(["198.51.100.2", far], ["2001:db8::2", near]);
  const { device, routes, forwarding } = planNetwork(dual, others, ways, options);
  t.same(device?.addresses, ["10.244.0.0/32", "fd00:244::/128"]);
  t.same(
    routes.map(({ gateway }) => gateway),
    ["10.244.1.0", "2001:db8::2"],
  );
  t.equal(forwarding.length, 1);
  t.same(planNetwork(own, others, ways, options).routes.length, 1, "only families of the node's own pods");
  const six = node("a", "fd00:244::/64", "2001:db8::1");
  const through = planNetwork(six, others, hops(["2001:db8::2", far]), options);
  t.match(through, { device: { local: "2001:db8::1", mtu: 1430 }, forwarding: [{ address: "2001:db8::2" }] });
});

const refused: readonly (readonly [string, NetworkNode, RegExp])[] = [
  ["a range outside of the cluster's", node("b", "192.168.0.0/16", "192.0.2.2"), /is outside of the cluster's range/],
  ["the whole range", node("b", "0.0.0.0/0", "192.0.2.2"), /is outside of the cluster's range/],
  ["the range of this node", node("b", "10.244.0.128/25", "192.0.2.2"), /overlaps that of another node/],
  ["the address of this node", node("b", "10.244.1.0/24", "192.0.2.1"), /has the same internal address/],
  ["an address without a route", node("b", "10.244.1.0/24", "203.0.113.9"), /no internal address that .* route to/],
];

for (const [what, other, message] of refused) {
  t.test(`a node with ${what} gets no route`, async (t) => {
    const { routes, problems } = planNetwork(own, [other], hops(["192.0.2.2", near], ["192.0.2.1", near]), options);
    t.same(routes, []);
    t.match(problems, [message]);
  });
}

t.test("a range of this node that others refuse is reported", async (t) => {
  const { problems } = planNetwork(node("a", "10.9.0.0/24", "192.0.2.1"), [], hops(), options);
  t.match(problems, [/10\.9\.0\.0\/24 of this node is outside/]);
});

t.test("macOf() is stable, unicast and locally administered", async (t) => {
  t.equal(macOf("a"), macOf("a"));
  t.not(macOf("a"), macOf("b"));
  for (const name of ["a", "b", "c", "d"]) t.equal(Number.parseInt(macOf(name).slice(0, 2), 16) & 3, 2);
});
