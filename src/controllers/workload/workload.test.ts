import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { isPodAvailable, sortForDeletion, untilAvailable } from "./active-pods.ts";
import { Expectations } from "./expectations.ts";
import { slowStart } from "./slow-start.ts";

t.test("slowStart() doubles its batches and stops after a batch with a failure", async (t) => {
  let calls = 0;
  t.same(await slowStart(25, async () => void calls++), { successes: 25 });
  t.equal(calls, 25);
  calls = 0;
  const quota = new Error("quota");
  const failing = async (): Promise<void> => {
    if (++calls > 2) throw quota;
  };
  t.same(await slowStart(100, failing), { successes: 2, error: quota });
  t.equal(calls, 3);
});

t.test("Expectations are satisfied when all is observed, or after five minutes", async (t) => {
  const clock = new FakeClock();
  const expectations = new Expectations(clock);
  t.ok(expectations.areSatisfied("a/b"));
  expectations.expectCreations("a/b", 2);
  expectations.creationObserved("a/b");
  t.notOk(expectations.areSatisfied("a/b"));
  expectations.creationObserved("a/b");
  t.ok(expectations.areSatisfied("a/b"));
  expectations.expectDeletions("a/b", ["a/p", "a/q"]);
  // The update to terminating and the deletion count once.
  for (let count = 0; count < 2; count++) expectations.deletionObserved("a/b", "a/p");
  t.notOk(expectations.areSatisfied("a/b"));
  t.equal(expectations.untilExpired("a/b"), 300_001);
  await clock.advance(300_001);
  t.ok(expectations.areSatisfied("a/b"));
  t.equal(expectations.untilExpired("a/b"), 0);
});

function pod(name: string, more: Partial<Pod> & { readonly ready?: string; readonly cost?: string } = {}): Pod {
  const { ready, cost, spec, status } = more;
  const annotations = cost === undefined ? {} : { "controller.kubernetes.io/pod-deletion-cost": cost };
  const conditions = ready === undefined ? [] : [{ type: "Ready", status: "True", lastTransitionTime: ready }];
  return {
    metadata: { name, uid: name, annotations, creationTimestamp: "2026-01-01T00:00:00Z" },
    spec: spec ?? { nodeName: "n", containers: [] },
    status: { phase: "Running", conditions, ...status },
  };
}

t.test("sortForDeletion() puts the least useful pods first", async (t) => {
  const now = Date.UTC(2026, 0, 1, 1);
  const pods = [
    pod("old", { ready: "2026-01-01T00:00:10Z" }),
    pod("young", { ready: "2026-01-01T00:59:50Z" }),
    pod("costly", { ready: "2026-01-01T00:59:50Z", cost: "10" }),
    pod("cheap", { ready: "2026-01-01T00:00:10Z", cost: "-1" }),
    pod("unready"),
    pod("pending", { status: { phase: "Pending" } }),
    pod("unassigned", { spec: { containers: [] } }),
  ];
  const names = (ranks: ReadonlyMap<Pod, number>) => sortForDeletion(pods, ranks, now).map((one) => one.metadata?.name);
  t.same(names(new Map()), ["unassigned", "pending", "unready", "cheap", "young", "old", "costly"]);
  t.same(names(new Map([[pods[0]!, 2]])).slice(4, 6), ["old", "young"]);
  const withoutCosts = sortForDeletion(pods, new Map(), now, false).map((one) => one.metadata?.name);
  t.same(withoutCosts, ["unassigned", "pending", "unready", "young", "costly", "old", "cheap"]);
});

t.test("sortForDeletion() takes a cost that is no 32-bit integer, or has a plus or leading zeros, as 0", async (t) => {
  const ready = "2026-01-01T00:00:10Z";
  for (const cost of ["2147483648", "-2147483649", "+5", "007", "1.5", "", "many"]) {
    const pods = [
      pod("one", { ready, cost: "1" }),
      pod("invalid", { ready, cost }),
      pod("minus", { ready, cost: "-1" }),
    ];
    const sorted = sortForDeletion(pods, new Map(), Date.UTC(2026, 0, 1, 1)).map((each) => each.metadata?.name);
    t.same(sorted, ["minus", "invalid", "one"], cost);
  }
  const pods = [pod("free", { ready }), pod("cheap", { ready, cost: "-001" })];
  t.same(sortForDeletion(pods, new Map(), Date.UTC(2026, 0, 1, 1))[0]?.metadata?.name, "cheap");
});

t.test("isPodAvailable() needs readiness for longer than minReadySeconds", async (t) => {
  const ready = pod("p", { ready: "2026-01-01T00:00:00Z" });
  const start = Date.UTC(2026, 0, 1);
  t.ok(isPodAvailable(ready, 0, start));
  t.notOk(isPodAvailable(ready, 2, start + 2000));
  t.equal(untilAvailable(ready, 2, start + 500), 1501);
  t.ok(isPodAvailable(ready, 2, start + 2001));
  t.notOk(isPodAvailable(pod("q"), 0, start));
});
