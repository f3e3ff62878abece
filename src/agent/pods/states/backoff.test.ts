import t from "tap";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";

const container = (name: string) => ({ name, image: "busybox:1", imagePullPolicy: "IfNotPresent" as const });

t.test("backoff records an event at once, and when another container has ended or started", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("a", { exitCode: 1, exitAfterMs: 100 });
  harness.fake.programs.set("b", { exitCode: 1, exitAfterMs: 4_000 });
  harness.manager.put(testPod("web", { containers: [container("a"), container("b")] }));
  const count = () => harness.events.filter(({ message }) => message.includes("failed container a in")).length;
  await harness.run(3);
  t.equal(count(), 1, "after the second run of the first container");
  await harness.run(5);
  t.equal(count(), 3, "after the end and the restart of the other one");
});
