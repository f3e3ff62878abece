import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createCgroupReader } from "./cgroup-reader.ts";
import { type ContainerReading, containerFamilies } from "./container-families.ts";

const memoryV1 = [
  "cache 4096",
  "rss 8192",
  "pgfault 3",
  "pgmajfault 1",
  "total_cache 5000",
  "total_rss 9000",
  "total_swap 10",
  "total_mapped_file 20",
  "total_inactive_file 1000",
  "total_active_file 4000",
  "total_pgfault 30",
  "total_pgmajfault 10",
].join("\n");

t.test("createCgroupReader() reads the files of cgroup v1", async (t) => {
  const hierarchy = t.testdir({
    cpu: {
      pod: {
        "cpu.stat": "nr_periods 10\nnr_throttled 2\nthrottled_time 3000\n",
        "cpu.shares": "512\n",
        "cpu.cfs_quota_us": "-1\n",
        "cpu.cfs_period_us": "100000\n",
      },
    },
    cpuacct: {
      pod: {
        "cpuacct.usage": "1234567890\n",
        "cpuacct.stat": "user 100\nsystem 23\n",
        "cgroup.procs": "7\n8\n",
        abc: {},
        "cri-containerd-def.scope": {},
      },
    },
    memory: {
      pod: {
        "memory.usage_in_bytes": "20000\n",
        "memory.max_usage_in_bytes": "30000\n",
        "memory.failcnt": "4\n",
        "memory.kmem.usage_in_bytes": "600\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
        "memory.stat": memoryV1,
        "memory.limit_in_bytes": "9223372036854771712\n",
        "memory.memsw.limit_in_bytes": "40000\n",
      },
    },
    pids: { pod: { "pids.current": "6\n", "pids.max": "max\n" } },
    blkio: {
      pod: {
        "blkio.throttle.io_service_bytes": "8:0 Read 4096\n8:0 Write 512\n8:0 Total 4608\nTotal 4608\n",
        "blkio.throttle.io_serviced": "8:0 Read 1\n8:0 Write 2\nTotal 3\n",
      },
    },
  });
  const clock = new FakeClock();
  const reader = createCgroupReader(hierarchy, false, clock);
  t.same(reader.readUsage("/pod"), {
    timeMs: clock.now(),
    cpu: {
      totalNs: 1_234_567_890,
      userNs: 1_000_000_000,
      systemNs: 230_000_000,
      throttling: { periods: 10, throttledPeriods: 2, throttledNs: 3000 },
    },
    memory: {
      usage: 20_000,
      workingSet: 19_000,
      rss: 9000,
      cache: 5000,
      mappedFile: 20,
      swap: 10,
      activeFile: 4000,
      inactiveFile: 1000,
      kernel: 600,
      maxUsage: 30_000,
      limitHits: 4,
      oomKills: 5,
      pageFaults: [3, 30],
      majorPageFaults: [1, 10],
    },
    threads: 6,
    devices: [{ device: "8:0", reads: 1, writes: 2, readBytes: 4096, writtenBytes: 512 }],
  });
  t.same(reader.readSpec("/pod"), {
    cpuShares: 512,
    cpuPeriodUs: 100_000,
    cpuQuotaUs: undefined,
    memoryBytes: undefined,
    memoryReservationBytes: undefined,
    memorySwapBytes: 40_000,
    threads: undefined,
  });
  t.same(reader.listChildren("/pod"), ["abc", "cri-containerd-def.scope"]);
  t.same(reader.listProcesses("/pod"), [7, 8]);
  const resources = { timeMs: clock.now(), cpuNs: 1_234_567_890, workingSet: 19_000, swap: 10 };
  t.same(reader.readResources("/pod"), resources);
  t.equal(reader.readResources("/absent"), undefined);
  t.equal(reader.readUsage("/absent"), undefined);
  t.same(reader.listChildren("/absent"), []);
});

t.test("createCgroupReader() reads the files of cgroup v2", async (t) => {
  const hierarchy = t.testdir({
    pod: {
      "cpu.stat": "usage_usec 2000\nuser_usec 1500\nsystem_usec 500\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
      "cpu.max": "50000 100000\n",
      "cpu.weight": "20\n",
      "memory.current": "20000\n",
      "memory.peak": "30000\n",
      "memory.max": "40000\n",
      "memory.swap.max": "0\n",
      "memory.low": "0\n",
      "memory.swap.current": "0\n",
      "memory.events": "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n",
      "memory.stat":
        "anon 9000\nfile 5000\nkernel 600\nfile_mapped 20\ninactive_file 1000\nactive_file 4000\npgfault 3\n",
      "pids.current": "6\n",
      "pids.max": "100\n",
      "io.stat": "8:0 rbytes=4096 wbytes=512 rios=1 wios=2 dbytes=0 dios=0\n",
      abc: {},
    },
  });
  const reader = createCgroupReader(hierarchy, true, new FakeClock());
  const usage = reader.readUsage("/pod");
  t.match(usage?.cpu, { totalNs: 2_000_000, userNs: 1_500_000, systemNs: 500_000, throttling: undefined });
  t.match(usage?.memory, { usage: 20_000, workingSet: 19_000, rss: 9000, maxUsage: 30_000, limitHits: 3, oomKills: 1 });
  t.equal(usage?.threads, 6);
  t.same(usage?.devices, [{ device: "8:0", reads: 1, writes: 2, readBytes: 4096, writtenBytes: 512 }]);
  t.same(reader.readSpec("/pod"), {
    cpuShares: 500,
    cpuPeriodUs: 100_000,
    cpuQuotaUs: 50_000,
    memoryBytes: 40_000,
    memoryReservationBytes: undefined,
    memorySwapBytes: 40_000,
    threads: 100,
  });
  t.same(reader.listChildren("/pod"), ["abc"]);
  t.match(reader.readResources("/pod"), { cpuNs: 2_000_000, workingSet: 19_000, swap: 0 });
  t.equal(reader.readResources("/absent"), undefined);
});

t.test("createCgroupReader() reads the pressure of cgroup v2 on request", async (t) => {
  const line = (kind: string, total: number) => `${kind} avg10=1.50 avg60=0.25 avg300=0.00 total=${total}\n`;
  const hierarchy = t.testdir({
    pod: {
      "cpu.stat": "usage_usec 2000\n",
      "cpu.pressure": line("some", 2_500_000),
      "memory.pressure": "",
      "io.pressure": line("some", 7) + line("full", 5),
    },
  });
  const read = (readsPressure: boolean) =>
    createCgroupReader(hierarchy, true, new FakeClock(), { readsPressure }).readUsage("/pod");
  t.equal(read(false)?.pressure, undefined);
  const usage = read(true)!;
  t.same(usage.pressure, {
    cpu: {
      full: { total: 0, avg10: 0, avg60: 0, avg300: 0 },
      some: { total: 2_500_000, avg10: 1.5, avg60: 0.25, avg300: 0 },
    },
    memory: undefined,
    io: {
      full: { total: 5, avg10: 1.5, avg60: 0.25, avg300: 0 },
      some: { total: 7, avg10: 1.5, avg60: 0.25, avg300: 0 },
    },
  });
  const reading = { usage, fileSystems: [], interfaces: [] } as Pick<ContainerReading, "usage"> as ContainerReading;
  const samples = containerFamilies
    .filter(({ name }) => name.startsWith("container_pressure_"))
    .flatMap(({ name, read }) => read(reading).map(({ value }) => `${name} ${value}`));
  t.same(samples, [
    "container_pressure_cpu_stalled_seconds_total 0",
    "container_pressure_cpu_waiting_seconds_total 2.5",
    "container_pressure_io_stalled_seconds_total 0.000005",
    "container_pressure_io_waiting_seconds_total 0.000007",
  ]);
});
