import t from "tap";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";

const volumes = [{ name: "v", configMap: { name: "late" } }];

t.test("mounting retries with increasing delays, and records an event each time", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("web", { volumes }));
  await at.run(16);
  const failed = at.events.filter(({ reason }) => reason === "FailedMount");
  t.ok(failed.length >= 5 && failed.length <= 6, "at 0, 0.5, 1.5, 3.5, 7.5 and 15.5 s");
  t.match(failed[0], {
    type: "Warning",
    message: 'MountVolume.SetUp failed for volume "v" : configmap "late" not found',
  });
  t.equal(at.status("web")?.phase, "Pending");
});

t.test("mounting continues at once when a missing object is created", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("web", { volumes }));
  await at.run(60);
  const before = at.events.filter(({ reason }) => reason === "FailedMount").length;
  at.objects.set("configMap/default/late", { k: "v" });
  at.manager.runtimeChanged("uid-web");
  await at.run(2);
  t.equal(at.status("web")?.phase, "Running");
  t.equal(at.events.filter(({ reason }) => reason === "FailedMount").length, before);
});

t.test("mounting records a summary of the missing volumes every two minutes", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("web", { volumes }));
  await at.run(250);
  const summaries = at.events.filter(({ message }) => message.startsWith("Unable to attach or mount volumes"));
  t.equal(summaries.length, 2);
  t.equal(
    summaries[0]?.message,
    "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: " +
      "context deadline exceeded",
  );
});
