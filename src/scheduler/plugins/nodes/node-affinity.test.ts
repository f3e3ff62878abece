import t from "tap";
import type { NodeSelectorRequirement } from "../../../api/core/node/selector.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { createSchedulerFixture } from "../../../testing/scheduler/scheduler-fixture.ts";

const nodes = ["a", "b"].map((name) => ({
  metadata: { name, labels: { gen: "5" } },
  status: { allocatable: { cpu: "2", memory: "2Gi", pods: "10" } },
}));

function pod(nodeAffinity: NonNullable<NonNullable<NonNullable<Pod["spec"]>["affinity"]>["nodeAffinity"]>): Pod {
  const metadata = { name: "p", namespace: "default", uid: "p" };
  return { metadata, spec: { containers: [{ name: "c", image: "i" }], affinity: { nodeAffinity } } };
}

/** The API server accepts a word here. */
const word: NodeSelectorRequirement = { key: "gen", operator: "Gt", values: ["four"] };
const prefer = (weight: number, ...matchExpressions: NodeSelectorRequirement[]) => ({
  weight,
  preference: { matchExpressions },
});

t.test("a preferred term that compares with a word is an error where several nodes are possible", async (t) => {
  const preferred = pod({ preferredDuringSchedulingIgnoredDuringExecution: [prefer(1), prefer(2, word)] });
  await t.rejects(createSchedulerFixture({ nodes }).decide(preferred), {
    message:
      "running PreScore plugin \"NodeAffinity\": [1].matchExpressions[0].values[0]: Invalid value: \"four\": for 'Gt', 'Lt' operators, the value must be an integer",
  });
  const { node } = await createSchedulerFixture({ nodes: nodes.slice(0, 1) }).decide(preferred);
  t.equal(node, "a", "a single node is not scored");
});

t.test("a required term that compares with a word matches no node, and others still do", async (t) => {
  const required = (...terms: NodeSelectorRequirement[]) =>
    pod({
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: terms.map((term) => ({ matchExpressions: [term] })),
      },
    });
  const { message } = await createSchedulerFixture({ nodes }).decide(required(word));
  t.match(message, "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.");
  const { node } = await createSchedulerFixture({ nodes }).decide(required(word, { key: "gen", operator: "Exists" }));
  t.ok(node);
});
