import t from "tap";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { deadlineExceeded } from "./deadline.ts";

t.test(
  "startDeadlineTimer() ends a pod after its deadline, also if the deadline is set or shortened later",
  async (t) => {
    for (const [name, first, later, before, after] of [
      ["from the start", 5, 5, 4, 2],
      ["set later", undefined, 8, 5, 4],
      ["set too late", undefined, 3, 5, 1],
      ["sooner", 60, 8, 5, 4],
    ] as const) {
      await using harness = await podHarness();
      const { spec, metadata } = testPod("p");
      const pod = (activeDeadlineSeconds: number | undefined) => ({
        metadata,
        spec: { ...spec!, ...(activeDeadlineSeconds === undefined ? {} : { activeDeadlineSeconds }) },
      });
      harness.manager.put(pod(first));
      await harness.run(before);
      t.equal(harness.status("p")?.phase, "Running", name);
      harness.manager.put(pod(later));
      await harness.run(after);
      t.match(harness.status("p"), { phase: "Failed", ...deadlineExceeded }, name);
      t.equal(harness.events.filter(({ reason }) => reason === "DeadlineExceeded").length, 4, name);
    }
  },
);

t.test("PodWorker shows why it ends a pod with the phase Failed, not while containers run", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { stopAfterMs: 3_000 });
  harness.manager.put(testPod("web", { activeDeadlineSeconds: 2 }));
  await harness.run(10);
  const shown = new Set(harness.statuses.map(({ status }) => `${status.phase} ${status.reason ?? ""}`.trim()));
  t.same([...shown], ["Pending", "Running", "Failed DeadlineExceeded"]);
});
