import t from "tap";
import type { Deployment } from "../../api/apps/deployment/schema.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import { maxSurge, maxUnavailable, newReplicaSetSize, proportionalSizes } from "./deployment-numbers.ts";

function deployment(replicas: number, surge: number | string, unavailable: number | string): Deployment {
  const rollingUpdate = { maxSurge: surge, maxUnavailable: unavailable };
  return { spec: { replicas, selector: {}, template: {}, strategy: { type: "RollingUpdate", rollingUpdate } } };
}

function set(name: string, replicas: number, maximum: number): ReplicaSet {
  const annotations = { "deployment.kubernetes.io/max-replicas": String(maximum) };
  return { metadata: { name, annotations }, spec: { replicas, selector: {} } };
}

for (const [replicas, surge, unavailable, surgeMax, unavailableMax] of [
  [10, "25%", "25%", 3, 2],
  [3, "10%", "10%", 1, 0],
  [4, 0, 0, 0, 1],
  [4, "0%", "0%", 0, 1],
  [2, 5, 5, 5, 2],
  [0, "25%", "25%", 0, 0],
  [1, 0, "50%", 0, 1],
] as const) {
  t.test(`${replicas} replicas with surge ${surge} and unavailability ${unavailable}`, async (t) => {
    const one = deployment(replicas, surge, unavailable);
    t.equal(maxSurge(one), surgeMax);
    t.equal(maxUnavailable(one), unavailableMax);
  });
}

t.test("newReplicaSetSize() fills what the surge leaves, but not more than the replicas", async (t) => {
  const one = deployment(10, 3, 0);
  t.equal(newReplicaSetSize(one, [set("old", 10, 13)], 0), 3);
  t.equal(newReplicaSetSize(one, [set("old", 8, 13), set("new", 3, 13)], 3), 5);
  t.equal(newReplicaSetSize(one, [set("old", 0, 13), set("new", 9, 13)], 9), 10);
  t.equal(newReplicaSetSize(one, [set("old", 14, 13)], 0), 0);
});

t.test("proportionalSizes() gives the largest replica set what rounding leaves", async (t) => {
  for (const [replicas, before, after] of [
    [15, [8, 5], [11, 7]],
    [5, [8, 5], [5, 3]],
    [0, [8, 5], [0, 0]],
    [30, [8, 3, 2], [20, 8, 5]],
    [10, [8, 5], [8, 5]],
  ] as const) {
    const sets = before.map((size, index) => set(`set-${index}`, size, 13));
    const sizes = proportionalSizes(deployment(replicas, 3, 0), sets).map(({ size }) => size);
    t.same(sizes, after, `${before} scaled to ${replicas}`);
    if (replicas > 0)
      t.equal(
        sizes.reduce((sum, size) => sum + size),
        replicas + 3,
      );
  }
});
