import t, { type Test } from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { ClusterEvent } from "../framework/cluster-event.ts";
import { unresolvable } from "../framework/rejection.ts";
import type { QueuedPod } from "./queued-pod.ts";
import { SchedulingQueue, type SchedulingQueueOptions } from "./scheduling-queue.ts";

const NODE_ADDED: ClusterEvent = { resource: "Node", action: "Add", before: undefined, after: {} };
const NODE_LABELLED: ClusterEvent = { resource: "Node", action: "UpdateNodeLabel", before: {}, after: {} };

function pod(name: string, spec: Partial<NonNullable<Pod["spec"]>> = {}): Pod {
  return { metadata: { name, namespace: "default", uid: name }, spec: { containers: [], ...spec } };
}

/** Only the plugin `Fit` is interested, in nodes that are added. */
function createQueue(t: Pick<Test, "teardown">, options: Partial<SchedulingQueueOptions> = {}) {
  const clock = new FakeClock();
  const queue = new SchedulingQueue({
    clock,
    initialBackoffMs: 1000,
    maxBackoffMs: 10_000,
    unschedulableMaxMs: 300_000,
    popsFromBackoff: false,
    preEnqueue: ({ pod: { spec } }) =>
      (spec?.schedulingGates ?? []).length > 0 ? unresolvable("SchedulingGates", "gated") : undefined,
    isRegistered: ({ action }) => action === "Add" || action === "UpdatePodSchedulingGatesEliminated",
    interestedPlugins: (_pod, { action }, rejectedBy) => [
      ...(action === "Add" && rejectedBy.has("Fit") ? ["Fit"] : []),
      ...(action === "UpdatePodSchedulingGatesEliminated" ? ["SchedulingGates"] : []),
    ],
    ...options,
  });
  t.teardown(() => queue[Symbol.dispose]());
  return { clock, queue };
}

function reject(queue: SchedulingQueue, queued: QueuedPod | undefined, ...plugins: readonly string[]): void {
  if (queued === undefined) throw new Error("no pod");
  queued.rejectedBy = new Set(plugins);
  queue.addUnschedulable(queued);
}

const nameOf = (queued: QueuedPod | undefined): string | undefined => queued?.info.name;

t.test("pods are scheduled by priority, then by arrival", async (t) => {
  const { queue } = createQueue(t);
  for (const [name, priority] of Object.entries({ a: 0, b: 10, c: 0, d: -1, e: 10 }))
    queue.add(pod(name, { priority }));
  const order = Array.from({ length: 5 }, () => nameOf(queue.pop()));
  t.same(order, ["b", "e", "a", "c", "d"]);
  t.equal(queue.pop(), undefined);
});

t.test("a rejected pod waits for an event that concerns it, and for its back-off, which doubles", async (t) => {
  const { clock, queue } = createQueue(t);
  queue.add(pod("a"));
  reject(queue, queue.pop(), "Fit");
  t.same(queue.sizes, { active: 0, backoff: 0, unschedulable: 1, gated: 0 });
  queue.move(NODE_LABELLED);
  t.equal(queue.sizes.unschedulable, 1);
  queue.move(NODE_ADDED);
  t.same(queue.sizes, { active: 0, backoff: 1, unschedulable: 0, gated: 0 });
  await clock.advance(999);
  t.equal(queue.pop(), undefined);
  await clock.advance(1);
  reject(queue, queue.pop(), "Fit");
  queue.move(NODE_ADDED);
  await clock.advance(1999);
  t.equal(queue.sizes.backoff, 1);
  await clock.advance(1);
  reject(queue, queue.pop(), "Fit");
  await clock.advance(60_000);
  queue.move(NODE_ADDED);
  t.equal(queue.sizes.active, 1, "the back-off is over");
});

t.test("an event while the pod was being scheduled retries it", async (t) => {
  const { queue } = createQueue(t);
  queue.add(pod("a"));
  queue.add(pod("b"));
  const [a, b] = [queue.pop(), queue.pop()];
  queue.move(NODE_ADDED);
  reject(queue, a, "Fit");
  reject(queue, b, "Other");
  t.same(queue.sizes, { active: 0, backoff: 1, unschedulable: 1, gated: 0 });
});

t.test("after an error a pod is retried without an event", async (t) => {
  const { clock, queue } = createQueue(t, { popsFromBackoff: true });
  queue.add(pod("a"));
  reject(queue, queue.pop());
  t.equal(queue.pop(), undefined, "not before its back-off is over");
  await clock.advance(1000);
  t.equal(nameOf(queue.pop()), "a");
});

t.test("a pod whose preemption failed is retried after its back-off only", async (t) => {
  const { clock, queue } = createQueue(t, { popsFromBackoff: true });
  queue.add(pod("a"));
  reject(queue, queue.pop(), "Other");
  queue.retryAfterBackoff("a");
  t.equal(queue.pop(), undefined);
  await clock.advance(1000);
  t.equal(nameOf(queue.pop()), "a");
});

t.test("with nothing else to do, a pod does not wait for the end of its back-off", async (t) => {
  const { queue } = createQueue(t, { popsFromBackoff: true });
  queue.add(pod("a"));
  reject(queue, queue.pop(), "Fit");
  queue.move(NODE_ADDED);
  queue.add(pod("b"));
  t.same([nameOf(queue.pop()), nameOf(queue.pop())], ["b", "a"]);
});

t.test(
  "of the pods in back-off those come first whose back-off ends in the same second, the earliest one",
  async (t) => {
    const { clock, queue } = createQueue(t, { popsFromBackoff: true });
    queue.add(pod("urgent", { priority: 9 }));
    for (let attempt = 0; attempt < 3; attempt++) {
      reject(queue, queue.pop(), "Fit");
      queue.move(NODE_ADDED);
    }
    await clock.advance(1500);
    for (const [name, priority] of [
      ["low", 1],
      ["high", 2],
    ] as const)
      queue.add(pod(name, { priority }));
    for (const queued of [queue.pop(), queue.pop()]) reject(queue, queued, "Fit");
    queue.move(NODE_ADDED);
    t.same([nameOf(queue.pop()), nameOf(queue.pop()), nameOf(queue.pop())], ["high", "low", "urgent"]);
  },
);

t.test("gated pods wait until their gates are removed", async (t) => {
  const { clock, queue } = createQueue(t);
  const gated = pod("a", { schedulingGates: [{ name: "g" }] });
  queue.add(gated);
  await clock.advance(600_000);
  t.same(queue.sizes, { active: 0, backoff: 0, unschedulable: 0, gated: 1 });
  const event = { resource: "UnschedulablePod", before: gated, after: pod("a") } as const;
  queue.update(gated, [{ ...event, action: "UpdatePodOther" }]);
  t.equal(queue.sizes.gated, 1);
  queue.update(pod("a"), [{ ...event, action: "UpdatePodSchedulingGatesEliminated" }]);
  t.equal(nameOf(queue.pop()), "a");
});

t.test("a pod that no event concerns is retried after five minutes", async (t) => {
  const { clock, queue } = createQueue(t);
  queue.add(pod("a"));
  reject(queue, queue.pop(), "Other");
  await clock.advance(299_999);
  t.equal(queue.sizes.unschedulable, 1);
  await clock.advance(1);
  t.equal(nameOf(queue.pop()), "a");
  t.equal(clock.pending, 0, "no timer is left");
});

t.test("deleted pods leave, and pods that extenders rejected react to any event", async (t) => {
  const { clock, queue } = createQueue(t);
  queue.add(pod("a"));
  queue.add(pod("b"));
  reject(queue, queue.pop(), "Extender");
  queue.delete("b");
  await clock.advance(5000);
  queue.move(NODE_LABELLED);
  t.same([nameOf(queue.pop()), nameOf(queue.pop())], ["a", undefined]);
});

t.test("wait() resolves with the next pod, or when the signal aborts", async (t) => {
  const { queue } = createQueue(t);
  const stop = new AbortController();
  const waiting = queue.wait(stop.signal);
  queue.add(pod("a"));
  await waiting;
  const again = queue.wait(stop.signal);
  stop.abort();
  await again;
});

t.test("events of waiting pods are observed by Kubernetes' names", async (t) => {
  const queued: string[] = [];
  const handled: string[] = [];
  const { queue } = createQueue(t, {
    onQueued: (part, event) => queued.push(`${part} ${event}`),
    onEventHandled: (event) => handled.push(event),
  });
  const gated = pod("a", { schedulingGates: [{ name: "wait" }] });
  queue.add(gated);
  const change = { resource: "UnschedulablePod", before: gated, after: pod("a") } as const;
  queue.update(pod("a"), [{ ...change, action: "UpdatePodSchedulingGatesEliminated" }]);
  queue.move({ resource: "AssignedPod", action: "UpdatePodOther", before: pod("b"), after: pod("b") });
  t.same(queued, ["unschedulable UnschedulablePodAdd", "active UnschedulablePodUpdatePodSchedulingGatesEliminated"]);
  t.same(handled, ["UnschedulablePodAdd", "UnschedulablePodUpdate", "AssignedPodUpdate"]);
});
