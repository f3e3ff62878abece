import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { ResourceRequirements } from "../../../api/core/resources/schema.ts";
import { CgroupTree } from "../../cgroups/cgroup-tree.ts";
import { findUnsupportedFeature } from "../admission/unsupported-features.ts";
import { makeContainerResources } from "./container-resources.ts";
import { PodCgroups } from "./pod-cgroups.ts";
import { getPodResource, listRequestedResources } from "./pod-resources.ts";
import { computeOomScoreAdj, getPodQosClass } from "./qos.ts";

const GIB = 2 ** 30;

function container(name: string, resources: ResourceRequirements = {}, more: Partial<Container> = {}): Container {
  return { name, image: "i", resources, ...more };
}

function pod(spec: Partial<PodSpec>): Pod {
  return { metadata: { name: "p", uid: "u" }, spec: { containers: [container("a")], ...spec } };
}

const whole = { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "2", memory: "2Gi" } };
const settings = { cpuCfsQuota: true, cpuCfsQuotaPeriodMs: 100 };

t.test("resources of the pod as a whole replace the sums of its containers", async (t) => {
  const small = container("a", { requests: { cpu: "100m", "ephemeral-storage": "1Gi" } });
  const it = pod({ containers: [small, small], resources: whole, overhead: { memory: "1Gi" } });
  t.equal(getPodResource(it, "requests", "cpu"), 1000);
  t.equal(getPodResource(it, "requests", "memory"), 2 * GIB, "and the overhead");
  t.equal(getPodResource(it, "requests", "ephemeral-storage"), 2 * GIB, "of its containers");
  t.equal(getPodResource(it, "limits", "memory"), 3 * GIB);
  t.same([...listRequestedResources(it)].sort(), ["cpu", "ephemeral-storage", "memory"]);
  t.equal(getPodQosClass(it), "Burstable");
  t.equal(getPodQosClass(pod({ resources: { limits: whole.limits, requests: whole.limits } })), "Guaranteed");
});

t.test("a container without a limit has the pod's", async (t) => {
  const make = (resources: ResourceRequirements) => {
    const own = container("a", resources);
    return makeContainerResources(pod({ containers: [own], resources: whole }), own, settings, 4 * GIB);
  };
  const limits = { cpuQuota: 200_000n, memoryLimitInBytes: 2n * 2n ** 30n };
  t.match(make({}), { cpuShares: 2048n, ...limits });
  t.match(make({ requests: { cpu: "500m" } }), { cpuShares: 512n, ...limits });
  t.match(make({ limits: { cpu: "1" } }), {
    cpuShares: 1024n,
    cpuQuota: 100_000n,
    memoryLimitInBytes: limits.memoryLimitInBytes,
  });
});

t.test("the pod's cgroup has the pod's limits, whatever its containers have", async (t) => {
  const hierarchy = t.testdir({ cpu: {}, memory: {} });
  const all = { cgroupDriver: "cgroupfs", cgroupRoot: "", cgroupsPerQos: true, podMaxPids: 0, ...settings } as const;
  mkdirSync(join(hierarchy, "pids"));
  const cgroups = new PodCgroups({ tree: new CgroupTree(hierarchy), settings: all, pods: () => [] });
  await cgroups.apply(pod({ resources: whole }));
  const read = (file: string) => readFileSync(join(hierarchy, file.replace("@", "kubepods/burstable/podu")), "utf8");
  t.equal(read("cpu/@/cpu.shares"), "1024");
  t.equal(read("cpu/@/cpu.cfs_quota_us"), "200000");
  t.equal(read("memory/@/memory.limit_in_bytes"), String(2 * GIB));
  await cgroups.apply(pod({ resources: { requests: { memory: "1Gi" }, limits: { memory: "1Gi" } } }));
  t.equal(read("cpu/@/cpu.cfs_quota_us"), "-1");
});

t.test("computeOomScoreAdj() has Kubernetes' figures", async (t) => {
  const of = (spec: Partial<PodSpec>, name: string, capacity = 16 * GIB) => {
    const all = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
    return computeOomScoreAdj(pod(spec), all.find((each) => each.name === name) ?? container("a"), capacity);
  };
  const memory = (quantity: string): ResourceRequirements => ({ requests: { memory: quantity } });
  t.equal(of({}, "a"), 1000, "BestEffort");
  t.equal(of({ containers: [container("a", { limits: { cpu: "1", memory: "1Gi" } })] }, "a"), -997, "Guaranteed");
  t.equal(of({ containers: [container("a", memory("4Gi"))] }, "a"), 750);
  t.equal(of({ containers: [container("a", memory("100Mi"))] }, "a"), 994, "the share is rounded down");
  t.equal(of({ containers: [container("a", memory("1"))] }, "a"), 999, "less than BestEffort");
  t.equal(of({ containers: [container("a", memory("16Gi"))] }, "a"), 3, "more than Guaranteed");
  const critical = { containers: [container("a", memory("4Gi"))], priority: 2_000_001_000 };
  t.equal(of({ ...critical, priorityClassName: "system-node-critical" }, "a"), -997);
  t.equal(of({ ...critical, priorityClassName: "system-cluster-critical" }, "a"), 750);
  const sidecar = (quantity: string) => container("s", memory(quantity), { restartPolicy: "Always" });
  const apps = [container("a", memory("4Gi")), container("b", memory("8Gi"))];
  t.equal(of({ containers: apps, initContainers: [sidecar("1Gi")] }, "s"), 750, "as the least of the others");
  t.equal(of({ containers: apps, initContainers: [sidecar("12Gi")] }, "s"), 250, "or its own");
  const shared = { containers: [container("a", memory("2Gi")), container("b")], resources: memory("6Gi") };
  t.equal(of(shared, "a"), 750, "half of the 4 GiB that no container requests");
  t.equal(of(shared, "b"), 875);
  t.equal(of({ ...shared, initContainers: [sidecar("1Gi")] }, "s"), 875);
});

t.test("the feature gate decides whether pods may have them", async (t) => {
  const find = (spec: Partial<PodSpec>, podLevelResources: boolean) =>
    findUnsupportedFeature(pod(spec), { settings: { podLevelResources } });
  t.equal(find({ resources: whole }, true), undefined);
  t.match(find({ resources: whole }, false), /^resources of the pod as a whole/);
  t.equal(find({ resources: {} }, false), undefined);
});
