import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { CgroupTree } from "./cgroup-tree.ts";
import { type NodeCgroupSettings, NodeCgroups } from "./node-cgroups.ts";

const capacity = { cpu: "2", memory: "1Gi", "hugepages-2Mi": "4Mi" };
const settings: NodeCgroupSettings = {
  cgroupDriver: "cgroupfs",
  cgroupRoot: "",
  cgroupsPerQos: true,
  enforce: ["pods"],
  systemReserved: { cpu: "500m", memory: "256Mi" },
  svcReserved: { memory: "256Mi", "hugepages-2Mi": "2Mi" },
  systemReservedCgroup: "",
  svcReservedCgroup: "",
  agentCgroup: "",
  systemCgroup: "",
};

function setUp(t: Test, more: Partial<NodeCgroupSettings>, tree?: CgroupTree) {
  const hierarchy = tree?.hierarchy ?? t.testdir({ cpu: {}, memory: {}, pids: {}, hugetlb: {} });
  const events: string[] = [];
  const clock = new FakeClock();
  const stop = new AbortController();
  const cgroups = new NodeCgroups({
    settings: { ...settings, ...more },
    capacity,
    tree: tree ?? new CgroupTree(hierarchy),
    slices: undefined,
    recordEvent: (type, reason, message) => void events.push(`${type} ${reason}: ${message}`),
    clock,
    log: silentLogger,
    signal: stop.signal,
  });
  return {
    hierarchy,
    events,
    clock,
    stop,
    cgroups,
    read: (file: string) => readFileSync(join(hierarchy, file), "utf8"),
  };
}

t.test("NodeCgroups.run() limits all pods to what is not reserved, and records one event", async (t) => {
  const { cgroups, read, events } = setUp(t, {});
  await cgroups.run();
  t.equal(read("cpu/kubepods/cpu.shares"), "1536");
  t.equal(read("memory/kubepods/memory.limit_in_bytes"), String(512 * 2 ** 20));
  t.equal(read("hugetlb/kubepods/hugetlb.2MB.limit_in_bytes"), String(2 * 2 ** 20));
  t.ok(Number(read("pids/kubepods/pids.max")) > 0);
  t.same(events, ["Normal NodeAllocatableEnforced: Updated Node Allocatable limit across pods"]);
});

t.test(
  "NodeCgroups.run() limits pods to the capacity when nothing is enforced, and not without QoS cgroups",
  async (t) => {
    const all = setUp(t, { enforce: [] });
    await all.cgroups.run();
    t.equal(all.read("memory/kubepods/memory.limit_in_bytes"), String(2 ** 30));
    const none = setUp(t, { cgroupsPerQos: false, enforce: [] });
    await none.cgroups.run();
    t.same(none.events, []);
  },
);

t.test("NodeCgroups.run() retries while the kernel refuses, until the agent stops", async (t) => {
  const broken = new CgroupTree("/nonexistent");
  let tries = 0;
  broken.create = async () => {
    tries += 1;
    throw new Error("device or resource busy");
  };
  const { cgroups, clock, events, stop } = setUp(t, {}, broken);
  const running = cgroups.run();
  await clock.advance(0);
  while (tries < 1) await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(60_000);
  while (tries < 2) await new Promise((resolve) => setImmediate(resolve));
  stop.abort();
  await running;
  t.match(events[0], /^Warning FailedNodeAllocatableEnforcement: .* device or resource busy$/);
});

t.test("NodeCgroups.enforceReservations() limits existing cgroups, and rejects for missing ones", async (t) => {
  const reserved = { enforce: ["svc-reserved"], svcReservedCgroup: "/svc", svcReserved: { memory: "1Mi" } } as const;
  const { cgroups, read, hierarchy, events } = setUp(t, reserved);
  await t.rejects(
    cgroups.enforceReservations(),
    /^Failed to enforce Svc Reserved Cgroup Limits on "\/svc": .* missing/,
  );
  for (const name of ["cpu", "memory", "pids", "hugetlb"]) mkdirSync(join(hierarchy, name, "svc"));
  await cgroups.enforceReservations();
  t.equal(read("memory/svc/memory.limit_in_bytes"), String(2 ** 20));
  t.equal(events.at(-1), "Normal NodeAllocatableEnforced: Updated limits on svc reserved cgroup /svc");
});

t.test("NodeCgroups.moveProcesses() moves the agent and the processes of the root cgroup, except PID 1", async (t) => {
  const hierarchy = t.testdir({ cpu: { "cgroup.procs": `1\n${process.pid}\n` } });
  const tree = new CgroupTree(hierarchy);
  const moved: string[] = [];
  tree.addProcess = async (path, pid) => {
    moved.push(`${path} ${pid}`);
    // The kernel removes the process from its previous cgroup.
    if (path === "/system") writeFileSync(join(hierarchy, "cpu/cgroup.procs"), "1\n");
  };
  const { cgroups } = setUp(t, { agentCgroup: "/agent", systemCgroup: "/system", cgroupRoot: "/pods" }, tree);
  await cgroups.moveProcesses();
  t.same(moved, [`/agent ${process.pid}`, `/system ${process.pid}`]);
  await t.rejects(setUp(t, { systemCgroup: "/" }).cgroups.moveProcesses(), /system container cannot be root/);
});

t.test("CgroupTree.limitsSwap() is true with cgroup v2 whose cgroups have a limit of swap", async (t) => {
  const limits = (files: object) => new CgroupTree(t.testdir(files as Parameters<typeof t.testdir>[0])).limitsSwap();
  t.equal(await limits({ "cgroup.controllers": "memory\n", "system.slice": { "memory.swap.max": "max\n" } }), true);
  t.equal(await limits({ "cgroup.controllers": "memory\n", "system.slice": { "memory.max": "max\n" } }), false);
  t.equal(await limits({ memory: { "memory.memsw.limit_in_bytes": "1\n" } }), false);
});
