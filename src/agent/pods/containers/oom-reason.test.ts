import t from "tap";
import type { FakeRuntime } from "../../../testing/agent/fake-runtime.ts";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { ObservedContainer } from "../../runtime/observation.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { awaitFinalReason, mayBeOomKilled } from "./oom-reason.ts";

const limited = { name: "c", image: "busybox:1", resources: { limits: { memory: "20Mi" } } };

t.test("awaitFinalReason() waits for a runtime that reports OOMKilled after the exit", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("p", { restartPolicy: "Never", containers: [limited] }));
  await at.run(1);
  const [container] = at.fake.named("c");
  at.fake.exit(container!.id, 137);
  void at.clock.sleep(100).then(() => {
    container!.status = { ...container!.status, reason: "OOMKilled" };
  });
  await at.run(2);
  t.match(at.status("p"), {
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
  t.notOk(mayBeOomKilled(pod, { ...exited, reason: "OOMKilled" }), "that is known");
  t.notOk(mayBeOomKilled(testPod("p"), exited), "there is no limit");
  t.notOk(mayBeOomKilled(deleted, exited), "nobody asks why");
});

t.test(
  "awaitFinalReason() requests the status of a just exited container again, also if the clock was set",
  async (t) => {
    const clock = new FakeClock();
    const asked: string[] = [];
    const runtime = {
      async containerStatus({ containerId = "" }: { readonly containerId?: string }) {
        asked.push(containerId);
        if (containerId === "gone") throw new RuntimeError("NOT_FOUND", "no such container");
        return { status: { id: containerId, state: "CONTAINER_EXITED", reason: "OOMKilled" } };
      },
    } as unknown as FakeRuntime["runtime"];
    const of = async (id: string, finishedAt: number): Promise<string> => {
      const container = { id, state: "exited", reason: "Error", finishedAt } as ObservedContainer;
      const sure = awaitFinalReason(container, runtime, clock, new AbortController().signal);
      await clock.advance(250);
      return (await sure).reason;
    };
    t.equal(await of("new", clock.now()), "OOMKilled");
    t.equal(await of("gone", clock.now()), "Error", "as it was seen");
    t.equal(await of("old", clock.now() - 250), "Error");
    t.equal(await of("future", clock.now() + 1), "Error");
    t.same(asked, ["new", "gone"]);
  },
);
