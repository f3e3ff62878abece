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
      await using at = await podHarness();
      const { spec, metadata } = testPod("p");
      const pod = (activeDeadlineSeconds: number | undefined) => ({
        metadata,
        spec: { ...spec!, ...(activeDeadlineSeconds === undefined ? {} : { activeDeadlineSeconds }) },
      });
      at.manager.put(pod(first));
      await at.run(before);
      t.equal(at.status("p")?.phase, "Running", name);
      at.manager.put(pod(later));
      await at.run(after);
      t.match(at.status("p"), { phase: "Failed", ...deadlineExceeded }, name);
      t.equal(at.events.filter(({ reason }) => reason === "DeadlineExceeded").length, 1, name);
    }
  },
);
