import t from "tap";
import { affectsNetwork } from "./link-monitor.ts";
import { networkNames } from "./network-names.ts";

const names = networkNames(undefined);

const relevant = [
  "3: eth0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default",
  "3: eth0@if7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default",
  "3: eth0    inet 192.0.2.5/24 scope global eth0",
  "Deleted 3: eth0    inet 192.0.2.5/24 scope global eth0",
  "Deleted 4: svc-vxlan: <BROADCAST,MULTICAST> mtu 1450 qdisc noop state DOWN group default",
  "Deleted 10.244.1.0/24 via 192.0.2.7 dev eth0 proto 84 metric 8400",
  "default via 192.0.2.1 dev eth0",
  "198.51.100.0/24 via 192.0.2.1 dev eth0",
  "Deleted 198.51.100.0/24 via 192.0.2.1 dev eth0",
];
const others = [
  "10.244.1.0/24 via 192.0.2.7 dev eth0 proto 84 metric 8400",
  "9: veth12ab34cd@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master svc0 state UP",
  "Deleted 9: veth12ab34cd: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN group default",
  "5: svc0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default",
  "local 10.244.0.0 dev svc-vxlan table local proto kernel scope host src 10.244.0.0",
  "fe80::/64 dev veth12ab34cd proto kernel metric 256 pref medium",
  "Deleted fe80::/64 dev eth0 proto kernel metric 256 pref medium",
  "multicast ff00::/8 dev eth0 table local proto kernel metric 256 pref medium",
  "10.244.0.0/24 dev svc0 proto kernel scope link src 10.244.0.1 linkdown",
];

t.test("changes of links, addresses and routes matter, those of pods and our own do not", async (t) => {
  for (const line of relevant) t.ok(affectsNetwork(line, names), line);
  for (const line of others) t.notOk(affectsNetwork(line, names), line);
});
