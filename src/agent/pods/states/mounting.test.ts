import t from "tap";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";

const volumes = [{ name: "v", configMap: { name: "late" } }];

t.test("mounting retries with increasing delays, and records an event each time", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web", { volumes }));
  await harness.run(16);
  const failed = harness.events.filter(({ reason }) => reason === "FailedMount");
  t.ok(failed.length >= 5 && failed.length <= 6, "at 0, 0.5, 1.5, 3.5, 7.5 and 15.5 s");
  t.match(failed[0], {
    type: "Warning",
    message: 'MountVolume.SetUp failed for volume "v" : configmap "late" not found',
  });
  t.equal(harness.status("web")?.phase, "Pending");
});

t.test("mounting continues at once when a missing object is created", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web", { volumes }));
  await harness.run(60);
  const before = harness.events.filter(({ reason }) => reason === "FailedMount").length;
  harness.objects.set("configMap/default/late", { k: "v" });
  harness.manager.onRuntimeChange("uid-web");
  await harness.run(2);
  t.equal(harness.status("web")?.phase, "Running");
  t.equal(harness.events.filter(({ reason }) => reason === "FailedMount").length, before);
});

t.test("mounting records a summary of the missing volumes every two minutes", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web", { volumes }));
  await harness.run(250);
  const summaries = harness.events.filter(({ message }) => message.startsWith("Unable to attach or mount volumes"));
  t.equal(summaries.length, 2);
  t.equal(
    summaries[0]?.message,
    "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: " +
      "context deadline exceeded",
  );
});
