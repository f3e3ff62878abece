import t from "tap";
import { addressInRange, checkRanges, isInside } from "./address-ranges.ts";

/** As in `/proc/net/route`: numbers are little-endian. */
const routes = [
  "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT",
  "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
  "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
  "tun0\t0000640A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0",
  "svc0\t0000F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
  "eth0\t0001F40A\t070200C0\t0003\t0\t0\t8400\t00FFFFFF\t0\t0\t0",
].join("\n");
const ranges = (service: string, cluster: string) => [
  { flag: "service-cidr", range: service },
  { flag: "cluster-cidr", range: cluster },
];

t.test(
  "checkRanges() accepts the default ranges beside a LAN, a default route, its own bridge and routes to pods",
  async (t) => {
    checkRanges(ranges("10.96.0.0/16", "10.244.0.0/16"), routes);
    checkRanges(ranges("10.96.0.0/16", "fd00:244::/48"), undefined);
    t.pass("without an error");
  },
);

const refused: readonly (readonly [string, string, RegExp])[] = [
  ["10.96.0.0/12", "10.244.0.0/16", /--service-cidr=10\.96\.0\.0\/12 overlaps the network 10\.100\.0\.0\/16 .* tun0/],
  [
    "192.0.2.128/25",
    "10.244.0.0/16",
    /--service-cidr=192\.0\.2\.128\/25 overlaps the network 192\.0\.2\.0\/24 .* eth0/,
  ],
  ["10.96.0.0/16", "10.100.7.0/24", /choose another range with --cluster-cidr/],
  ["10.96.0.0/16", "10.96.128.0/17", /--service-cidr=10\.96\.0\.0\/16 overlaps --cluster-cidr=10\.96\.128\.0\/17/],
];

for (const [service, cluster, message] of refused) {
  t.test(`checkRanges() refuses services in ${service} with pods in ${cluster}`, async (t) => {
    t.throws(() => checkRanges(ranges(service, cluster), routes), message);
  });
}

t.test("addressInRange() counts from the first address", async (t) => {
  t.equal(addressInRange("10.96.0.0/16", 1n), "10.96.0.1");
  t.equal(addressInRange("fd00:96::/112", 10n), "fd00:96::a");
  t.throws(() => addressInRange("10.96.0.0/30", 10n), /fewer than 11 addresses/);
  t.throws(() => addressInRange("services", 1n), /it is not a CIDR/);
});

t.test("isInside() compares whole ranges", async (t) => {
  t.ok(isInside("10.244.7.0/24", "10.244.0.0/16"));
  t.notOk(isInside("10.0.0.0/8", "10.244.0.0/16"));
  t.notOk(isInside("fd00::/64", "10.244.0.0/16"));
});
