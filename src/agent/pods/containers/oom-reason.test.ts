import t from "tap";
import type { FakeRuntime } from "../../../testing/agent/fake-runtime.ts";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { ObservedContainer } from "../../runtime/observation.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { awaitFinalReason, mayBeOomKilled } from "./oom-reason.ts";

const limited = { name: "c", image: "busybox:1", resources: { limits: { memory: "20Mi" } } };

t.test("awaitFinalReason() waits for a runtime that reports OOMKilled after the exit", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("p", { restartPolicy: "Never", containers: [limited] }));
  await harness.run(1);
  const [container] = harness.fake.containersNamed("c");
  harness.fake.exit(container!.id, 137);
  void harness.clock.sleep(100).then(() => {
    container!.status = { ...container!.status, reason: "OOMKilled" };
  });
  await harness.run(2);
  t.match(harness.status("p"), {
    phase: "Failed",
    containerStatuses: [{ state: { terminated: { exitCode: 137, reason: "OOMKilled" } } }],
  });
});

t.test("mayBeOomKilled() is true only for an exited container with a memory limit", async (t) => {
  const pod = testPod("p", { containers: [limited] });
  const exited = { name: "c", state: "exited", reason: "Error" } as ObservedContainer;
  const deleted = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  t.ok(mayBeOomKilled(pod, exited));
  t.notOk(mayBeOomKilled(pod, { ...exited, state: "running" }));
  t.notOk(mayBeOomKilled(pod, { ...exited, reason: "OOMKilled" }), "the reason is final already");
  t.notOk(mayBeOomKilled(testPod("p"), exited), "there is no limit");
  t.notOk(mayBeOomKilled(deleted, exited), "the pod is deleted");
});

t.test(
  "awaitFinalReason() requests the status of a just exited container again, also if the clock was set",
  async (t) => {
    const clock = new FakeClock();
    const requested: string[] = [];
    const runtime = {
      async containerStatus({ containerId = "" }: { readonly containerId?: string }) {
        requested.push(containerId);
        if (containerId === "removed") throw new RuntimeError("NOT_FOUND", "no such container");
        return { status: { id: containerId, state: "CONTAINER_EXITED", reason: "OOMKilled" } };
      },
    } as unknown as FakeRuntime["runtime"];
    const of = async (id: string, finishedAt: number): Promise<string> => {
      const container = { id, state: "exited", reason: "Error", finishedAt } as ObservedContainer;
      const result = awaitFinalReason(container, runtime, clock, new AbortController().signal);
      await clock.advance(250);
      return (await result).reason;
    };
    t.equal(await of("new", clock.now()), "OOMKilled");
    t.equal(await of("removed", clock.now()), "Error", "keeps the observed reason");
    t.equal(await of("old", clock.now() - 250), "Error");
    t.equal(await of("future", clock.now() + 1), "Error");
    t.same(requested, ["new", "removed"]);
  },
);
