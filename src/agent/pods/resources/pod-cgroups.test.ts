import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { CgroupTree, toCpuWeight } from "../../cgroups/cgroup-tree.ts";
import { PodCgroups } from "./pod-cgroups.ts";

const settings = {
  cgroupDriver: "cgroupfs",
  cgroupRoot: "",
  cgroupsPerQos: true,
  cpuCfsQuota: true,
  cpuCfsQuotaPeriodMs: 100,
  podMaxPids: 50,
} as const;

function pod(cpu: string, memory: string): Pod {
  const resources = { requests: { cpu: "100m" }, limits: { cpu, memory } };
  const overhead = { cpu: "70m", memory: "20Mi" };
  return { metadata: { uid: "u1" }, spec: { containers: [{ name: "c", resources }], overhead } };
}

t.test("PodCgroups.apply() writes the limits of the whole pod to cgroup v1", async (t) => {
  const hierarchy = t.testdir({ cpu: {}, memory: {}, pids: {} });
  const cgroups = new PodCgroups({ tree: new CgroupTree(hierarchy), settings, pods: () => [] });
  const read = (file: string) => readFileSync(join(hierarchy, file.replace("@", "kubepods/burstable/podu1")), "utf8");
  await cgroups.apply(pod("200m", "40Mi"));
  t.equal(read("cpu/@/cpu.shares"), "174");
  t.equal(read("cpu/@/cpu.cfs_quota_us"), "27000");
  t.equal(read("memory/@/memory.limit_in_bytes"), String(60 * 2 ** 20));
  t.equal(read("pids/@/pids.max"), "50");
  t.equal(read("cpu/kubepods/burstable/cpu.shares"), "174");
  await cgroups.apply(pod("120m", "80Mi"), pod("200m", "40Mi"));
  t.equal(read("cpu/@/cpu.cfs_quota_us"), "27000", "grows before its containers");
  t.equal(read("memory/@/memory.limit_in_bytes"), String(100 * 2 ** 20));
  await cgroups.apply(pod("120m", "80Mi"));
  t.equal(read("cpu/@/cpu.cfs_quota_us"), "19000", "and shrinks after them");
  await cgroups.apply({ ...pod("1", "1Mi"), spec: { containers: [{ name: "c" }] } });
  t.equal(readFileSync(join(hierarchy, "memory/kubepods/besteffort/podu1/memory.limit_in_bytes"), "utf8"), "-1");
});

t.test("PodCgroups.apply() writes the limits of the whole pod to cgroup v2", async (t) => {
  const hierarchy = t.testdir({ "cgroup.controllers": "cpu memory pids" });
  const at = join(hierarchy, "kubepods/burstable/podu1");
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, "cpu.max"), "max 100000");
  await new PodCgroups({ tree: new CgroupTree(hierarchy), settings, pods: () => [] }).apply(pod("200m", "40Mi"));
  t.equal(readFileSync(join(at, "cpu.max"), "utf8"), "27000 100000");
  t.equal(readFileSync(join(at, "memory.max"), "utf8"), String(60 * 2 ** 20));
  t.equal(readFileSync(join(at, "cpu.weight"), "utf8"), String(toCpuWeight(174)));
  t.equal(readFileSync(join(hierarchy, "kubepods/cgroup.subtree_control"), "utf8"), "+cpu +memory +pids");
  t.same([2, 1024, 262_144].map(toCpuWeight), [1, 39, 10_000]);
  t.notOk(existsSync(join(at, "memory.min")));
  const memoryQos = { throttlingFactor: 0.9, allocatableBytes: 2 ** 30 };
  const resources = { requests: { memory: "8Mi" }, limits: { memory: "40Mi" } };
  const protectedPod = { metadata: { uid: "u1" }, spec: { containers: [{ name: "c", resources }] } };
  const tree = new CgroupTree(hierarchy);
  await new PodCgroups({ tree, settings: { ...settings, memoryQos }, pods: () => [] }).apply(protectedPod);
  for (const path of ["kubepods/burstable/podu1", "kubepods/burstable", "kubepods"]) {
    t.equal(readFileSync(join(hierarchy, path, "memory.min"), "utf8"), String(8 * 2 ** 20), path);
  }
});

t.test("PodCgroups.remove() leaves the class of the pod the share of the pods that remain", async (t) => {
  const hierarchy = t.testdir({ cpu: {}, memory: {}, pids: {} });
  const second = { ...pod("200m", "40Mi"), metadata: { uid: "u2" } };
  const pods = [pod("200m", "40Mi"), second];
  const cgroups = new PodCgroups({ tree: new CgroupTree(hierarchy), settings, pods: () => pods });
  const shares = () => readFileSync(join(hierarchy, "cpu/kubepods/burstable/cpu.shares"), "utf8");
  await cgroups.remove("u1");
  t.notOk(existsSync(join(hierarchy, "cpu/kubepods")), "creates nothing");
  for (const each of pods) await cgroups.apply(each);
  t.equal(shares(), "348");
  await cgroups.remove("u2");
  t.equal(shares(), "174");
});
