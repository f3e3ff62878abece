import t from "tap";
import { parseInterfaces, readInterfaces, readProcess } from "./network-usage.ts";
import { UsageRates } from "./usage-rates.ts";

const usage = (timeMs: number, totalNs: number) => ({
  timeMs,
  cpu: { totalNs, userNs: 0, systemNs: 0, throttling: undefined },
  memory: undefined,
  threads: undefined,
  devices: [],
});

t.test("UsageRates.update() returns the CPU time per second since the reading before", async (t) => {
  const rates = new UsageRates();
  t.equal(rates.update("/a", usage(0, 0)), undefined);
  t.equal(rates.update("/a", usage(500, 5e8)), undefined, "too close");
  t.equal(rates.update("/a", usage(2_000, 1e9)), 5e8);
  t.equal(rates.update("/a", usage(2_500, 3e9)), 5e8, "too close: the rate before");
  t.equal(rates.update("/a", usage(4_000, 1e9)), 0);
  t.equal(rates.update("/a", usage(400_000, 2e9)), undefined, "too far apart");
  t.equal(rates.update("/a", { ...usage(500_000, 0), cpu: undefined }), undefined);
  rates.retain(new Set());
  t.equal(rates.update("/a", usage(402_000, 2e9)), undefined, "forgotten");
});

t.test("parseInterfaces() leaves out the loopback device and links of pods", async (t) => {
  const text = [
    "Inter-|   Receive                                                |  Transmit",
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed",
    "    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0",
    "  eth0: 12345678     90    1    2    0     0          0         0     5678      60    3    4    0     0       0          0",
    "veth12:       1       1    0    0    0     0          0         0        1       1    0    0    0     0       0          0",
    "",
  ].join("\n");
  t.same(parseInterfaces(text), [
    {
      name: "eth0",
      rxBytes: 12_345_678,
      rxPackets: 90,
      rxErrors: 1,
      rxDropped: 2,
      txBytes: 5678,
      txPackets: 60,
      txErrors: 3,
      txDropped: 4,
    },
  ]);
  t.same(parseInterfaces(""), []);
});

t.test("readProcess() counts the open files of a process", async (t) => {
  const own = readProcess(process.pid);
  t.ok(own !== undefined && own.descriptors > 2);
  t.ok((own?.descriptorsMax ?? 1e6) > 10);
  t.equal(readProcess(2 ** 22 + 1), undefined);
  t.ok(Array.isArray(readInterfaces("self")));
});
