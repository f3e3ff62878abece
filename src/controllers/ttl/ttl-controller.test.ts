import t from "tap";
import { nodeKind } from "../../api/core/node/kind.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { passTime } from "../../testing/std/pass-time.ts";
import { nextStep } from "./ttl-controller.ts";

const steps = [
  [0, 1, 0],
  [0, 100, 0],
  [0, 101, 1],
  [1, 95, 1],
  [1, 89, 0],
  [0, 1200, 3],
  [3, 950, 3],
  [3, 880, 2],
  [5, 8999, 4],
  [4, 10_001, 5],
  [5, 3, 0],
] as const;
for (const [current, nodes, expected] of steps) {
  t.test(`${nodes} nodes change step ${current} to ${expected}`, async (t) => {
    t.equal(nextStep(current, nodes), expected);
  });
}

t.test("a node has the annotation, also after another client changed it", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: ["ttl"] }, clock);
  await client.create(nodeKind, { metadata: { name: "n1" } });
  await passTime(clock, 100);
  const ttlOf = async (): Promise<string | undefined> =>
    (await client.get(nodeKind, { name: "n1" })).metadata?.annotations?.["node.alpha.kubernetes.io/ttl"];
  t.equal(await ttlOf(), "0");
  const patch = { metadata: { annotations: { "node.alpha.kubernetes.io/ttl": "7" } } };
  await client.patch(nodeKind, { name: "n1" }, "merge", patch);
  await passTime(clock, 100);
  t.equal(await ttlOf(), "0");
});
