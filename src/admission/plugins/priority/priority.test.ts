import t from "tap";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { priorityClassKind } from "../../../api/scheduling/priority-class/kind.ts";
import { readerOf, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { priority } from "./priority.ts";

const pod = (spec: Partial<PodSpec>): Pod => ({
  metadata: { name: "web", namespace: "default" },
  spec: { containers: [], ...spec },
});

const slow = { metadata: { name: "slow" }, value: -5, preemptionPolicy: "Never" as const };

t.test("priority() sets the priority of a pod from its class, and keeps it on an update without one", async (t) => {
  const plugin = priority({ reader: readerOf([[priorityClassKind, slow]]) });
  const spec = async (podSpec: Partial<PodSpec>) => (await runPlugin(plugin, podKind, pod(podSpec))).object.spec;
  t.match(await spec({ priorityClassName: "slow" }), { priority: -5, preemptionPolicy: "Never" });
  t.match(await spec({}), { priority: 0, preemptionPolicy: "PreemptLowerPriority" });
  t.match(await spec({ priorityClassName: "system-node-critical" }), { priority: 2_000_001_000 });
  const why = async (podSpec: Partial<PodSpec>) => await rejectionOf(runPlugin(plugin, podKind, pod(podSpec)));
  t.equal(
    await why({ priorityClassName: "none" }),
    'pods "web" is forbidden: no PriorityClass with name none was found',
  );
  t.match(await why({ priority: 7 }), /integer value of priority \(7\) must not be provided .* computed 0 from/);
  t.match(await why({ preemptionPolicy: "Never" }), /string value of PreemptionPolicy \(Never\) must not/);
  const kept = await runPlugin(plugin, podKind, pod({}), {
    oldObject: pod({ priority: 3, preemptionPolicy: "Never" }),
  });
  t.match(kept.object.spec, { priority: 3, preemptionPolicy: "Never" });
});

t.test("priority() uses the lowest of several default classes and rejects a second default", async (t) => {
  const two = [40, 10].map((value) => ({ metadata: { name: `c${value}` }, value, globalDefault: true }));
  const plugin = priority({ reader: readerOf(two.map((one) => [priorityClassKind, one])) });
  const { object } = await runPlugin(plugin, podKind, pod({}));
  t.match(object.spec, { priorityClassName: "c10", priority: 10 });
  const third = { metadata: { name: "c" }, value: 1, globalDefault: true };
  const why = "PriorityClass c10 is already marked as default. Only one default can exist";
  t.match(await rejectionOf(runPlugin(plugin, priorityClassKind, third)), why);
  t.equal(await rejectionOf(runPlugin(plugin, priorityClassKind, two[1], { oldObject: two[1] as never })), "");
  t.equal(await rejectionOf(runPlugin(plugin, priorityClassKind, { ...third, globalDefault: false })), "");
});
