import { stat } from "node:fs/promises";
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

t.test("mounting records one event about all claims of the pod that cannot be used, every 10 to 15 s", async (t) => {
  await using harness = await podHarness();
  const claims = ["b", "a"].map((name) => ({ name, persistentVolumeClaim: { claimName: "none" } }));
  harness.manager.put(testPod("web", { volumes: [...claims, ...volumes] }));
  await harness.run(40);
  const found = harness.events.filter(({ message }) => message.startsWith("Unable to attach or mount volumes"));
  t.ok(found.length >= 3 && found.length <= 4, "at 0, 12.5, 25 and 37.5 s");
  t.equal(
    found[0]?.message,
    "Unable to attach or mount volumes: unmounted volumes=[a b v], unattached volumes=[], " +
      "failed to process volumes=[a b]: error processing PVC default/none: failed to fetch PVC from API server: " +
      'persistentvolumeclaims "none" not found',
  );
});

t.test("mounting records no event about the time that volumes take", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web", { volumes }));
  await harness.run(250);
  t.same(
    [...new Set(harness.events.map(({ message }) => message))],
    ['MountVolume.SetUp failed for volume "v" : configmap "late" not found'],
  );
});

t.test("mounting leaves out volumes that no container uses, until an ephemeral container does", async (t) => {
  await using harness = await podHarness();
  const used = testPod("web");
  const pod = {
    ...used,
    spec: { ...used.spec!, volumes: [{ name: "v", emptyDir: {} }, ...volumes.map((each) => ({ ...each, name: "w" }))] },
  };
  harness.manager.put(pod);
  await harness.run(3);
  t.equal(harness.status("web")?.phase, "Running");
  const path = harness.services.volumes.path(pod, pod.spec.volumes[0]!);
  await t.rejects(stat(path));
  const volumeMounts = [{ name: "v", mountPath: "/v" }];
  const ephemeralContainers = [{ name: "debug", image: "busybox:1", volumeMounts }];
  harness.manager.put({ ...pod, spec: { ...pod.spec, ephemeralContainers } });
  await harness.run(3);
  t.ok((await stat(path)).isDirectory());
  t.ok(harness.status("web")?.ephemeralContainerStatuses?.[0]?.state?.running);
});
