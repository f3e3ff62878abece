/** Plugins that look after pods, and the nodes that these run on. */
import t from "tap";
import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Taint } from "../../../api/core/node/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod, PodSpec } from "../../../api/core/pod/schema.ts";
import { runtimeClassKind } from "../../../api/node/runtime-class/kind.ts";
import { priorityClassKind } from "../../../api/scheduling/priority-class/kind.ts";
import { runPlugin, readerOf, rejectionOf } from "../../../testing/admission/admission-fixture.ts";
import { defaultTolerationSeconds } from "../default-toleration-seconds/default-toleration-seconds.ts";
import { runtimeClass } from "../runtime-class/runtime-class.ts";
import { taintNodesByCondition } from "../taint-nodes-by-condition/taint-nodes-by-condition.ts";
import { priority } from "./priority.ts";

const pod = (spec: Partial<PodSpec>): Pod => ({
  metadata: { name: "web", namespace: "default" },
  spec: { containers: [], ...spec },
});

t.test("defaultTolerationSeconds() lets a pod stay a while on a node in trouble, unless it says itself", async (t) => {
  const plugin = defaultTolerationSeconds({ tolerationSeconds: { notReady: 300, unreachable: 60 } });
  const { object } = await runPlugin(plugin, podKind, pod({}));
  t.match(object.spec?.tolerations, [
    { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
    { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60 },
  ]);
  t.equal((await runPlugin(plugin, podKind, pod({}), { oldObject: object })).object.spec?.tolerations?.length, 2);
  const all = pod({ tolerations: [{ operator: "Exists" }] });
  t.equal((await runPlugin(plugin, podKind, all)).object, all);
  const status = pod({});
  t.equal((await runPlugin(plugin, podKind, status, { oldObject: status, subresource: "status" })).object, status);
});

t.test("taintNodesByCondition() taints new nodes once, whichever way the taint is spelt", async (t) => {
  const notReady: Taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };
  const other: Taint = { key: "dedicated", value: "till", effect: "NoExecute" };
  const tainted = async (taints?: readonly Taint[]) => {
    const node = { metadata: { name: "n" }, spec: { ...(taints === undefined ? {} : { taints }) } };
    return (await runPlugin(taintNodesByCondition(), nodeKind, node)).object.spec?.taints;
  };
  t.same(await tainted(), [notReady]);
  t.same(await tainted([other]), [other, notReady]);
  t.same(await tainted([notReady]), [notReady]);
  t.same(await tainted([{ ...notReady, key: "node.svc.io/not-ready" }]), [
    { ...notReady, key: "node.svc.io/not-ready" },
  ]);
  t.same(await tainted([{ ...notReady, effect: "NoExecute" }]), [{ ...notReady, effect: "NoExecute" }, notReady]);
});

const slow = { metadata: { name: "slow" }, value: -5, preemptionPolicy: "Never" as const };

t.test("priority() ranks a pod by its class, and keeps what a client leaves out", async (t) => {
  const plugin = priority({ reader: readerOf([[priorityClassKind, slow]]) });
  const spec = async (asked: Partial<PodSpec>) => (await runPlugin(plugin, podKind, pod(asked))).object.spec;
  t.match(await spec({ priorityClassName: "slow" }), { priority: -5, preemptionPolicy: "Never" });
  t.match(await spec({}), { priority: 0, preemptionPolicy: "PreemptLowerPriority" });
  t.match(await spec({ priorityClassName: "system-node-critical" }), { priority: 2_000_001_000 });
  const why = async (asked: Partial<PodSpec>) => await rejectionOf(runPlugin(plugin, podKind, pod(asked)));
  t.equal(
    await why({ priorityClassName: "none" }),
    'pods "web" is forbidden: no PriorityClass with name none was found',
  );
  t.match(await why({ priority: 7 }), /integer value of priority \(7\) must not be provided .* computed 0 from/);
  t.match(await why({ preemptionPolicy: "Never" }), /string value of PreemptionPolicy \(Never\) must not/);
  const kept = await runPlugin(plugin, podKind, pod({}), { oldObject: pod({ priority: 3, preemptionPolicy: "Never" }) });
  t.match(kept.object.spec, { priority: 3, preemptionPolicy: "Never" });
});

t.test("priority() gives the least of the default classes, and lets no second one be made", async (t) => {
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

t.test("runtimeClass() gives a pod the overhead and the nodes of its class", async (t) => {
  const heavy = { metadata: { name: "heavy" }, handler: "vm", overhead: { podFixed: { cpu: "1" } } };
  const placed = {
    metadata: { name: "placed" },
    handler: "vm",
    scheduling: { nodeSelector: { vm: "yes" }, tolerations: [{ key: "vm", operator: "Exists" as const }] },
  };
  const present = [heavy, placed].map((one) => [runtimeClassKind, one] as const);
  const plugin = runtimeClass({ reader: readerOf(present) });
  const spec = async (asked: Partial<PodSpec>) => (await runPlugin(plugin, podKind, pod(asked))).object.spec;
  t.same((await spec({ runtimeClassName: "heavy" }))?.overhead, { cpu: "1" });
  t.match(await spec({ runtimeClassName: "placed", nodeSelector: { a: "b" } }), {
    nodeSelector: { a: "b", vm: "yes" },
    tolerations: [{ key: "vm" }],
  });
  const why = async (asked: Partial<PodSpec>) => await rejectionOf(runPlugin(plugin, podKind, pod(asked)));
  t.match(await why({ runtimeClassName: "none" }), /pod rejected: RuntimeClass "none" not found/);
  t.match(await why({ overhead: { cpu: "1" } }), /without corresponding RuntimeClass defined Overhead/);
  t.match(await why({ runtimeClassName: "heavy", overhead: { cpu: "2" } }), /doesn't match RuntimeClass/);
  t.equal(await why({ runtimeClassName: "heavy", overhead: { cpu: "1000m" } }), "");
  t.match(await why({ runtimeClassName: "placed", nodeSelector: { vm: "no" } }), /conflict: runtimeClass.scheduling/);
});
