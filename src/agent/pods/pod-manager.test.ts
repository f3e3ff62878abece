import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { type Harness, podHarness, testPod } from "../../testing/agent/pod-harness.ts";

const staticPod = (name: string) => {
  const pod = testPod(name);
  return { ...pod, metadata: { ...pod.metadata, annotations: { "kubernetes.io/config.source": "file" } } };
};

/** The files of a pod are removed in real time, while the fake clock stands still. */
async function waitFor(harness: Harness, isDone: () => boolean): Promise<void> {
  for (let step = 0; step < 5_000 && !isDone(); step++) await harness.clock.advance(0);
}

for (const [source, pod] of [
  ["the API server", testPod("web")],
  ["a manifest", staticPod("web")],
] as const) {
  t.test(`PodManager publishes no status of a pod of ${source} after its removal`, async (t) => {
    await using harness = await podHarness();
    harness.manager.put(pod);
    await harness.run(2);
    // The next agent adopts the pod, and its source removes it at once.
    await harness.manager.close({ stopPods: false, graceSeconds: 0 });
    const manager = harness.restart();
    manager.put(pod);
    await harness.run(1);
    t.equal(harness.fake.containersNamed("c").length, 1, "adopted");
    const letRemove = harness.fake.hold("removePodSandbox");
    manager.delete("uid-web");
    await waitFor(harness, () => harness.fake.calls.at(-1)?.method === "removePodSandbox");
    // A listing of the runtime shows the removal before it has completed.
    const letObserve = harness.fake.hold("listPodSandbox");
    manager.onRuntimeChange("uid-web");
    await harness.clock.advance(0);
    letRemove();
    await waitFor(harness, () => harness.removed.length > 0);
    t.same(harness.removed, ["web"]);
    const published = harness.statuses.length;
    letObserve();
    await harness.run(2);
    t.equal(harness.statuses.length, published);
  });

  t.test(`PodManager terminates a running pod of ${source} that is removed before its first sync`, async (t) => {
    await using harness = await podHarness();
    harness.manager.put(pod);
    await harness.run(2);
    await harness.manager.close({ stopPods: false, graceSeconds: 0 });
    const manager = harness.restart();
    const letObserve = harness.fake.hold("listPodSandbox");
    manager.put(pod);
    await harness.clock.advance(0);
    manager.delete("uid-web");
    letObserve();
    await harness.run(3);
    t.same(harness.removed, ["web"]);
    t.equal(harness.fake.containers.size + harness.fake.sandboxes.size, 0);
  });

  t.test(`PodManager starts a pod of ${source} again that returns while it terminates`, async (t) => {
    await using harness = await podHarness();
    harness.fake.programs.set("c", { stopAfterMs: 5_000 });
    harness.manager.put(pod);
    await harness.run(2);
    harness.manager.delete("uid-web");
    await harness.run(1);
    harness.manager.put(pod);
    harness.manager.put(pod);
    await harness.run(8);
    t.equal(harness.status("web")?.phase, "Running");
    t.equal(harness.fake.containersNamed("c")[0]?.status.state, "CONTAINER_RUNNING");
    t.same(harness.removed, [], "it is not removed for those who follow its status");
    harness.manager.delete("uid-web");
    await harness.run(8);
    t.same(harness.removed, ["web"]);
  });

  t.test(`PodManager does not start a pod of ${source} that returns and leaves while it terminates`, async (t) => {
    await using harness = await podHarness();
    harness.fake.programs.set("c", { stopAfterMs: 5_000 });
    harness.manager.put(pod);
    await harness.run(2);
    harness.manager.delete("uid-web");
    await harness.run(1);
    harness.manager.put(pod);
    harness.manager.delete("uid-web");
    await harness.run(8);
    t.same(harness.removed, ["web"]);
    t.equal(harness.fake.containers.size, 0);
  });
}

t.test("PodManager shows a pod whose source returns while it terminates as an orphan", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { stopAfterMs: 5_000 });
  const pod = staticPod("web");
  harness.manager.put(pod);
  await harness.run(2);
  await harness.manager.close({ stopPods: false, graceSeconds: 0 });
  const manager = harness.restart();
  const runtimePod = { uid: "uid-web", name: "web", namespace: "default", running: true, digest: "" };
  manager.terminateOrphans(new Map([["uid-web", runtimePod]]));
  await harness.run(1);
  const published = harness.statuses.length;
  manager.put(pod);
  await harness.run(8);
  t.equal(harness.status("web")?.phase, "Running");
  t.ok(harness.statuses.length > published);
  t.equal(harness.fake.containersNamed("c")[0]?.status.state, "CONTAINER_RUNNING");
});

t.test("PodManager counts no pods that their source has removed, though they still terminate", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { stopAfterMs: 5_000 });
  harness.manager.put(testPod("web"));
  await harness.run(2);
  const names = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata?.name);
  t.same(names(harness.manager.assigned), ["web"]);
  harness.manager.delete("uid-web");
  await harness.run(1);
  t.same(names(harness.manager.active), ["web"]);
  t.same(names(harness.manager.assigned), []);
  await harness.run(8);
  t.same(harness.removed, ["web"]);
});
