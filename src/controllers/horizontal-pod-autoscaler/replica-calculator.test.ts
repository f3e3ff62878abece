import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodMetric } from "./metrics-client.ts";
import {
  groupPods,
  podRequests,
  proposeByRatio,
  proposeByUsage,
  proposeByUtilization,
  proposePerPod,
} from "./replica-calculator.ts";

const NOW = Date.UTC(2026, 0, 1, 12);
const OPTIONS = { now: NOW, cpuInitializationPeriodMs: 300_000, initialReadinessDelayMs: 30_000 };
const TOLERANCES = { scaleDown: 0.1, scaleUp: 0.1 };

interface PodOptions {
  readonly phase?: NonNullable<Pod["status"]>["phase"];
  readonly ready?: "True" | "False";
  readonly startedSecondsAgo?: number;
  readonly changedSecondsAgo?: number;
  readonly request?: string;
  readonly isDeleted?: boolean;
}

function time(secondsAgo: number): string {
  return new Date(NOW - secondsAgo * 1000).toISOString();
}

function pod(index: number, options: PodOptions = {}): Pod {
  const { phase = "Running", ready = "True", startedSecondsAgo = 3600, request = "1" } = options;
  const { changedSecondsAgo = startedSecondsAgo } = options;
  const condition = { type: "Ready", status: ready, lastTransitionTime: time(changedSecondsAgo) };
  return {
    metadata: { name: `p${index}`, ...(options.isDeleted === true ? { deletionTimestamp: time(1) } : {}) },
    spec: { containers: [{ name: "c", resources: { requests: { cpu: request } } }] },
    status: { phase, startTime: time(startedSecondsAgo), conditions: [condition] },
  };
}

function metrics(values: readonly (number | undefined)[]): ReadonlyMap<string, PodMetric> {
  return new Map(
    values.flatMap((value, index) =>
      value === undefined ? [] : [[`p${index}`, { value, at: NOW - 10_000, windowMs: 30_000 }] as const],
    ),
  );
}

const cases: readonly {
  readonly title: string;
  readonly pods: readonly PodOptions[];
  readonly values: readonly (number | undefined)[];
  readonly target: number;
  readonly replicas: number;
  readonly utilization: number;
}[] = [
  {
    title: "a usage above the target scales up",
    pods: [{}, {}, {}],
    values: [300, 500, 700],
    target: 30,
    replicas: 5,
    utilization: 50,
  },
  {
    title: "a usage below the target scales down",
    pods: [{}, {}, {}, {}],
    values: [100, 300, 500, 300],
    target: 60,
    replicas: 2,
    utilization: 30,
  },
  {
    title: "a small difference changes nothing",
    pods: [{}, {}, {}],
    values: [1010, 1030, 1020],
    target: 100,
    replicas: 3,
    utilization: 102,
  },
  {
    title: "a pod that is starting weakens a scale up",
    pods: [{ ready: "False", startedSecondsAgo: 60 }, {}, {}],
    values: [100, 500, 700],
    target: 30,
    replicas: 4,
    utilization: 60,
  },
  {
    title: "a pending pod weakens a scale up",
    pods: [{ phase: "Pending" }, {}, {}],
    values: [undefined, 500, 700],
    target: 30,
    replicas: 4,
    utilization: 60,
  },
  {
    title: "failed and deleted pods are ignored",
    pods: [{ phase: "Failed" }, { isDeleted: true }, {}, {}],
    values: [10_000, 10_000, 500, 700],
    target: 30,
    replicas: 4,
    utilization: 60,
  },
  {
    title: "a pod without metrics counts as idle in a scale up",
    pods: [{}, {}, {}],
    values: [undefined, 500, 700],
    target: 30,
    replicas: 4,
    utilization: 60,
  },
  {
    title: "a pod without metrics counts as busy in a scale down",
    pods: [{}, {}, {}],
    values: [undefined, 100, 100],
    target: 60,
    replicas: 2,
    utilization: 10,
  },
  {
    title: "pods without metrics do not reverse the direction",
    pods: [{}, {}, {}, {}],
    values: [undefined, undefined, undefined, 450],
    target: 50,
    replicas: 4,
    utilization: 45,
  },
  {
    title: "a sample from before the pod became ready is ignored",
    pods: [{ startedSecondsAgo: 60, changedSecondsAgo: 20 }, {}],
    values: [5000, 300],
    target: 30,
    replicas: 2,
    utilization: 30,
  },
];
for (const { title, pods, values, target, replicas, utilization } of cases) {
  t.test(title, async (t) => {
    const all = pods.map((options, index) => pod(index, options));
    const groups = groupPods(all, metrics(values), "cpu", OPTIONS);
    const requests = podRequests(all, "cpu", undefined);
    const proposal = proposeByUtilization(pods.length, target, groups, requests, TOLERANCES);
    t.match(proposal, { replicas, utilization });
  });
}

t.test("a pod that was ready once and is old counts even if it is not ready", async (t) => {
  const old = pod(0, { ready: "False", startedSecondsAgo: 3600, changedSecondsAgo: 60 });
  t.equal(groupPods([old], metrics([100]), "cpu", OPTIONS).ready, 1);
  const never = pod(0, { ready: "False", startedSecondsAgo: 3600 });
  t.throws(() => groupPods([never], metrics([100]), "cpu", OPTIONS), { message: /pods might be unready/ });
  t.equal(groupPods([never], metrics([100]), "memory", OPTIONS).ready, 1);
});

t.test("a container without a request is an error; sidecars count", async (t) => {
  const bare: Pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c" }] } };
  const message = "missing request for cpu in container c of Pod p";
  t.throws(() => podRequests([bare], "cpu", undefined), { message });
  const resources = { requests: { cpu: "100m" } };
  const withSidecar: Pod = {
    metadata: { name: "p" },
    spec: {
      containers: [{ name: "c", resources }],
      initContainers: [{ name: "s", restartPolicy: "Always", resources }, { name: "i" }],
    },
  };
  t.equal(podRequests([withSidecar], "cpu", undefined).get("p"), 200);
  t.equal(podRequests([withSidecar], "cpu", "s").get("p"), 100);
});

t.test("an average amount per pod is the target of a plain metric", async (t) => {
  const all = [pod(0), pod(1)];
  const groups = groupPods(all, metrics([20_000, 10_000]), "", OPTIONS);
  t.strictSame(proposeByUsage(2, 5000, groups, TOLERANCES), { replicas: 6, usage: 15_000 });
});

t.test("a ratio scales ready pods, and replicas from zero", async (t) => {
  t.equal(proposeByRatio(3, 2, [pod(0), pod(1), pod(2, { ready: "False" })], TOLERANCES), 4);
  t.equal(proposeByRatio(0, 2.5, [], TOLERANCES), 3);
  t.equal(proposeByRatio(3, 1.05, [], TOLERANCES), 3);
  t.throws(() => proposeByRatio(3, 2, [], TOLERANCES), { message: /no pods returned by selector/ });
});

t.test("a target without replicas gets what the value needs; its average is the least number, as in Go", async (t) => {
  const none = Number(-(2n ** 63n));
  t.strictSame(proposePerPod(0, 50_000, 12_000, TOLERANCES), { replicas: 5, usage: none });
  t.strictSame(proposePerPod(0, 0, 12_000, TOLERANCES), { replicas: 0, usage: none });
  t.strictSame(proposePerPod(2, 50_000, 12_000, TOLERANCES), { replicas: 5, usage: 25_000 });
});
