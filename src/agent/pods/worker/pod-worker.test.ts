import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { type Harness, podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { digestOf } from "../../runtime/observation.ts";
import { RuntimeError } from "../../runtime/runtime.ts";

/** The successive states of the first container, with its restart count. */
function statesOf(harness: Harness, pod: string): readonly string[] {
  const all = harness.statuses
    .filter((each) => each.pod === pod)
    .map(({ status }) => {
      const { state, restartCount } = status.containerStatuses?.[0] ?? {};
      return `${state?.waiting?.reason ?? state?.terminated?.reason ?? "running"} #${restartCount}`;
    });
  return all.filter((each, index) => each !== all[index - 1]);
}

const reasons = (events: readonly { reason: string }[]) => events.map((each) => each.reason);

t.test("PodWorker starts a pod, reports it as Running, and records events", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web"));
  await harness.run(1);
  const status = harness.status("web");
  t.equal(status?.phase, "Running");
  t.same(reasons(harness.events), ["Pulled", "Created", "Started"]);
  t.equal(harness.events[0]?.message, 'Container image "busybox:1" already present on machine');
  t.equal(status?.conditions?.find((each) => each.type === "Ready")?.status, "True");
  t.equal(status?.podIP, harness.fake.sandboxes.values().next().value?.ip);
  t.match(status?.containerStatuses?.[0], { ready: true, started: true, restartCount: 0, containerID: /^fake:\/\// });
});

t.test("PodWorker reports a Never pod that exits with 0 as Succeeded once its sandbox has stopped", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { exitAfterMs: 1500, exitCode: 0 });
  harness.manager.put(testPod("job", { restartPolicy: "Never" }));
  await harness.run(3);
  t.equal(harness.status("job")?.phase, "Succeeded");
  t.equal(harness.status("job")?.containerStatuses?.[0]?.state?.terminated?.reason, "Completed");
  t.equal([...harness.fake.sandboxes.values()][0]?.ready, false);
  const phases = harness.statuses.map((each) => each.status.phase);
  t.ok(phases.indexOf("Succeeded") > phases.indexOf("Running"));
  t.same(
    harness.status("job")?.conditions?.map((each) => [each.type, each.status, each.reason]),
    [
      ["PodReadyToStartContainers", "False", undefined],
      ["Initialized", "True", "PodCompleted"],
      ["Ready", "False", "PodCompleted"],
      ["ContainersReady", "False", "PodCompleted"],
      ["PodScheduled", "True", undefined],
    ],
  );
});

t.test("PodWorker reports a Never pod that exits with an error as Failed", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { exitAfterMs: 500, exitCode: 3 });
  harness.manager.put(testPod("job", { restartPolicy: "Never" }));
  await harness.run(3);
  t.equal(harness.status("job")?.phase, "Failed");
  t.equal(harness.fake.containersNamed("c").length, 1);
});

t.test("PodWorker restarts a crashing container at once, then after 10, 20, 40 s", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { exitAfterMs: 100, exitCode: 1 });
  harness.manager.put(testPod("crash"));
  await harness.run(85);
  const starts = harness.fake.calls.filter((each) => each.method === "startContainer").length;
  t.equal(starts, 5, "at 0, 1, 12, 33 and 74 s");
  const status = harness.status("crash");
  t.equal(status?.containerStatuses?.[0]?.restartCount, 4);
  t.match(status?.containerStatuses?.[0]?.state?.waiting, {
    reason: "CrashLoopBackOff",
    message: "back-off 1m20s restarting failed container=c pod=crash_default(uid-crash)",
  });
  t.equal(status?.phase, "Running");
  t.ok(harness.fake.containersNamed("c").length <= 2, "no more than one old run is kept");
  t.ok(harness.events.some((each) => each.reason === "BackOff" && each.type === "Warning"));
});

t.test("PodWorker reports how a container ended before it reports CrashLoopBackOff", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { exitAfterMs: 100, exitCode: 1 });
  harness.manager.put(testPod("crash"));
  await harness.run(30);
  t.same(
    statesOf(harness, "crash").filter((state) => !state.startsWith("running")),
    ["ContainerCreating #0", "Error #0", "Error #1", "CrashLoopBackOff #1", "Error #2", "CrashLoopBackOff #2"],
  );
});

t.test("PodWorker resets the restart delay of a container that ran for 10 minutes", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", (attempt) =>
    attempt === 2 ? { exitAfterMs: 700_000 } : { exitAfterMs: 100, exitCode: 1 },
  );
  harness.manager.put(testPod("web"));
  await harness.run(716);
  const before = harness.fake.calls.filter((each) => each.method === "startContainer").length;
  t.equal(before, 4, "the restart after the long run was immediate");
  t.equal(harness.status("web")?.containerStatuses?.[0]?.restartCount, 3);
});

t.test("PodWorker runs init containers one after the other before the pod's own", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("i1", { exitAfterMs: 900 });
  harness.fake.programs.set("i2", { exitAfterMs: 900 });
  const init = (name: string) => ({ name, image: "busybox:1" });
  harness.manager.put(testPod("web", { initContainers: [init("i1"), init("i2")] }));
  await harness.run(1);
  t.match(harness.status("web")?.containerStatuses?.[0]?.state, { waiting: { reason: "PodInitializing" } });
  t.match(harness.status("web")?.conditions?.[1], {
    type: "Initialized",
    status: "False",
    message: "containers with incomplete status: [i2]",
  });
  await harness.run(3);
  t.same(
    harness.events.filter((each) => each.reason === "Started").map((each) => each.container),
    ["i1", "i2", "c"],
  );
  t.equal(harness.status("web")?.phase, "Running");
  t.equal(harness.status("web")?.initContainerStatuses?.[0]?.ready, true);
});

t.test("PodWorker reports a Never pod whose init container fails as Failed", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("i", { exitAfterMs: 100, exitCode: 5 });
  harness.manager.put(testPod("job", { restartPolicy: "Never", initContainers: [{ name: "i", image: "busybox:1" }] }));
  await harness.run(3);
  t.equal(harness.status("job")?.phase, "Failed");
  t.equal(harness.fake.containersNamed("c").length, 0);
});

t.test("PodWorker keeps a sidecar running beside the containers and stops it after them", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { exitAfterMs: 2000 });
  const sidecar = { name: "s", image: "busybox:1", restartPolicy: "Always" };
  harness.manager.put(testPod("job", { restartPolicy: "Never", initContainers: [sidecar] }));
  await harness.run(1);
  t.match(harness.status("job")?.initContainerStatuses?.[0], { ready: true, started: true });
  await harness.run(4);
  t.equal(harness.status("job")?.phase, "Succeeded");
  t.equal(harness.fake.containersNamed("s")[0]?.status.state, "CONTAINER_EXITED");
});

t.test("PodWorker terminates a deleted pod within its grace period and reports that it is finished", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { stopAfterMs: Number.POSITIVE_INFINITY });
  const pod = testPod("web", { terminationGracePeriodSeconds: 5 });
  harness.manager.put(pod);
  await harness.run(1);
  const metadata = { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:06Z", deletionGracePeriodSeconds: 5 };
  harness.manager.put({ ...pod, metadata });
  await harness.run(3);
  t.equal(harness.fake.containersNamed("c")[0]?.status.state, "CONTAINER_RUNNING", "the grace period is not over");
  t.same(harness.finished, []);
  await harness.run(4);
  t.equal(harness.fake.containersNamed("c")[0]?.status.exitCode, 137);
  t.same([...new Set(harness.finished)], ["web"]);
  t.ok(harness.events.some((each) => each.reason === "Killing" && each.message === "Stopping container c"));
  harness.manager.delete("uid-web");
  await harness.run(1);
  t.same(harness.removed, ["web"]);
  t.equal(harness.fake.sandboxes.size, 0);
  t.equal(harness.fake.containers.size, 0);
});

t.test("PodWorker.released waits for the volumes, after the containers have stopped", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web", { terminationGracePeriodSeconds: 1 }));
  await harness.run(2);
  const worker = harness.manager.worker("uid-web");
  const done: string[] = [];
  void worker?.ended.then(() => done.push("ended"));
  void worker?.released.then(() => done.push("released"));
  const { volumes } = harness.services;
  let isBusy = true;
  const tearDown = volumes.tearDown.bind(volumes);
  volumes.tearDown = async (uid) => {
    if (isBusy) throw new Error("the volume is busy");
    await tearDown(uid);
  };
  worker?.terminate({ graceSeconds: 1, failure: undefined });
  await harness.run(12);
  t.same(done, ["ended"]);
  isBusy = false;
  await harness.run(10);
  t.same(done, ["ended", "released"]);
});

t.test("PodWorker shortens the grace period when a second delete request has a shorter one", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { stopAfterMs: Number.POSITIVE_INFINITY });
  const pod = testPod("web");
  harness.manager.put(pod);
  await harness.run(1);
  const deleted = (seconds: number) => ({
    ...pod,
    metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:01:00Z", deletionGracePeriodSeconds: seconds },
  });
  harness.manager.put(deleted(600));
  await harness.run(2);
  t.equal(harness.fake.containersNamed("c")[0]?.status.state, "CONTAINER_RUNNING");
  harness.manager.put(deleted(2));
  await harness.run(4);
  t.equal(harness.fake.containersNamed("c")[0]?.status.state, "CONTAINER_EXITED");
});

t.test("PodWorker adopts running containers after the agent was killed, and starts none twice", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", (attempt) => (attempt === 0 ? { exitAfterMs: 100, exitCode: 1 } : {}));
  const pod = testPod("web");
  harness.manager.put(pod);
  await harness.run(3);
  t.equal(harness.status("web")?.containerStatuses?.[0]?.restartCount, 1);
  await harness.manager.close({ stopPods: false, graceSeconds: 0 });
  const starts = () => harness.fake.calls.filter((each) => each.method === "startContainer").length;
  const before = starts();
  const manager = harness.restart();
  manager.put({ ...pod, status: harness.status("web") });
  await harness.run(3);
  t.equal(starts(), before);
  t.match(harness.status("web")?.containerStatuses?.[0], { restartCount: 1, ready: true });
  t.match(harness.status("web")?.containerStatuses?.[0]?.lastState, { terminated: { exitCode: 1 } });
});

t.test(
  "PodWorker reports no address of a pod that ended before the agent started, and that of a running one",
  async (t) => {
    await using harness = await podHarness();
    harness.fake.programs.set("job", { exitAfterMs: 100, exitCode: 0 });
    const containers = [{ name: "job", image: "busybox:1" }];
    const pods = [testPod("ended", { restartPolicy: "Never", containers }), testPod("web")];
    for (const pod of pods) harness.manager.put(pod);
    await harness.run(3);
    t.match(harness.status("ended"), { phase: "Succeeded", podIP: String });
    await harness.manager.close({ stopPods: false, graceSeconds: 0 });
    const before = pods.map((pod) => ({ ...pod, status: harness.status(pod.metadata?.name ?? "") }));
    const manager = harness.restart();
    for (const pod of before) manager.put(pod);
    await harness.run(3);
    t.match(harness.status("ended"), { phase: "Succeeded", podIP: undefined, podIPs: undefined });
    t.equal(harness.status("web")?.podIP, before[1]?.status?.podIP);
  },
);

t.test("PodWorker takes over restart delays and probe results from the agent before it", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { exitAfterMs: 100, exitCode: 1 });
  const crash = testPod("crash");
  harness.manager.put(crash);
  await harness.run(36);
  const starts = () => harness.fake.calls.filter((each) => each.method === "startContainer").length;
  t.equal(starts(), 4, "at 0, 1, 12 and 33 s");
  await harness.manager.close({ stopPods: false, graceSeconds: 0 });
  harness.restart().put({ ...crash, status: harness.status("crash") });
  await harness.run(30);
  t.equal(starts(), 4, "40 s are not over yet");
  t.match(harness.status("crash")?.containerStatuses?.[0]?.state?.waiting, { message: /^back-off 40s / });
  await harness.run(12);
  t.equal(starts(), 5);
});

t.test(
  "PodWorker does not repeat startup and readiness probes that passed before a restart of the agent",
  async (t) => {
    await using harness = await podHarness();
    const exec = { command: ["true"] };
    const probes = { startupProbe: { exec, periodSeconds: 1 }, readinessProbe: { exec, periodSeconds: 1 } };
    const image = "busybox:1";
    const pod = testPod("web", { containers: [{ name: "c", image, imagePullPolicy: "IfNotPresent", ...probes }] });
    harness.manager.put(pod);
    await harness.run(5);
    t.match(harness.status("web")?.containerStatuses?.[0], { ready: true, started: true });
    await harness.manager.close({ stopPods: false, graceSeconds: 0 });
    const before = harness.statuses.length;
    harness.restart().put({ ...pod, status: harness.status("web") });
    await harness.run(5);
    const later = harness.statuses.slice(before).map(({ status }) => status.containerStatuses?.[0]);
    t.ok(later.length > 0 && later.every((each) => each?.ready === true && each.started === true), "it stays ready");
  },
);

t.test("PodWorker completes a start that a crash of the agent interrupted between create and start", async (t) => {
  await using harness = await podHarness();
  harness.fake.fail("startContainer", new Error("the agent was killed here"));
  const pod = testPod("web");
  harness.manager.put(pod);
  await harness.run(1);
  await harness.manager.close({ stopPods: false, graceSeconds: 0 });
  t.equal(harness.fake.containersNamed("c")[0]?.status.state, "CONTAINER_CREATED");
  harness.restart().put(pod);
  await harness.run(2);
  t.equal(harness.fake.containersNamed("c").length, 1);
  t.match(harness.status("web")?.containerStatuses?.[0], { restartCount: 0, ready: true });
});

t.test("PodManager.terminateOrphans() stops pods of the runtime that no source has", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web", { terminationGracePeriodSeconds: 1 }));
  await harness.run(1);
  await harness.manager.close({ stopPods: false, graceSeconds: 0 });
  const manager = harness.restart();
  manager.terminateOrphans(
    new Map([["uid-web", { uid: "uid-web", name: "web", namespace: "default", running: true, digest: "" }]]),
  );
  await harness.run(4);
  t.equal(harness.fake.containers.size, 0);
  t.equal(harness.fake.sandboxes.size, 0);
});

t.test("PodManager.close() with stopPods stops containers, and a new agent starts them again", async (t) => {
  await using harness = await podHarness();
  const pod = testPod("web");
  harness.manager.put(pod);
  await harness.run(1);
  await harness.manager.close({ stopPods: true, graceSeconds: 1 });
  t.equal(harness.fake.containersNamed("c")[0]?.status.state, "CONTAINER_EXITED");
  harness.restart().put({ ...pod, status: harness.status("web") });
  await harness.run(3);
  t.equal(harness.status("web")?.phase, "Running");
  t.equal(harness.status("web")?.containerStatuses?.[0]?.restartCount, 1);
  t.ok(harness.events.some((each) => each.reason === "SandboxChanged"));
});

t.test("PodWorker reports a failed pull as ErrImagePull, then ImagePullBackOff, and recovers", async (t) => {
  await using harness = await podHarness();
  const image = "registry.test/none:1";
  harness.manager.put(testPod("web", { containers: [{ name: "c", image, imagePullPolicy: "IfNotPresent" }] }));
  await harness.run(0);
  t.match(harness.status("web")?.containerStatuses?.[0]?.state?.waiting, { reason: "ErrImagePull" });
  await harness.run(3);
  harness.fake.pullable.set(image, { id: "sha256:1", size: 7n });
  await harness.run(10);
  t.equal(harness.status("web")?.phase, "Running");
  t.same(statesOf(harness, "web"), ["ContainerCreating #0", "ErrImagePull #0", "ImagePullBackOff #0", "running #0"]);
  const waits = harness.statuses.map(({ status }) => status.containerStatuses?.[0]?.state?.waiting);
  t.equal(
    waits.find((waiting) => waiting?.reason === "ImagePullBackOff")?.message,
    `Back-off pulling image "${image}": ErrImagePull: rpc error: code = NotFound desc = ` +
      `failed to pull and unpack image "${image}"`,
  );
  const recorded = harness.events.map(({ reason }) => reason);
  t.match(recorded, ["Pulling", "Failed", "Failed", "BackOff", "Failed"]);
  t.ok(harness.events.some((each) => /^Successfully pulled image .* Image size: 7 bytes\.$/.test(each.message)));
});

t.test("PodWorker refuses a pod with an unsupported feature, and names the feature", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(
    testPod("db", { volumes: [{ name: "data", iscsi: { targetPortal: "x", iqn: "iqn.x", lun: 0 } }] }),
  );
  await harness.run(1);
  t.equal(harness.status("db")?.phase, "Pending");
  t.match(harness.status("db")?.containerStatuses?.[0]?.state?.waiting, {
    reason: "Unsupported",
    message: 'the pod needs volume "data" of type iscsi, which this agent does not support',
  });
  t.match(harness.events[0], { type: "Warning", reason: "Unsupported" });
  t.equal(harness.fake.sandboxes.size, 0);
});

t.test("PodWorker retries while the runtime cannot be reached", async (t) => {
  await using harness = await podHarness();
  harness.fake.fail("runPodSandbox", new RuntimeError("UNAVAILABLE", "connection refused"), 2);
  harness.manager.put(testPod("web"));
  await harness.run(15);
  t.equal(harness.status("web")?.phase, "Running");
  t.equal(harness.events.filter((each) => each.reason === "FailedCreatePodSandBox").length, 2);
  t.equal(
    harness.events[0]?.message,
    "Failed to create pod sandbox: rpc error: code = Unavailable desc = connection refused",
  );
});

t.test("PodWorker replaces a container whose image changed", async (t) => {
  await using harness = await podHarness();
  harness.fake.addImage("busybox:2");
  const pod = testPod("web");
  harness.manager.put(pod);
  await harness.run(1);
  harness.manager.put({ ...pod, spec: { ...pod.spec, containers: [{ name: "c", image: "busybox:2" }] } });
  await harness.run(2);
  t.ok(harness.events.some((each) => each.message === "Container c definition changed, will be restarted"));
  t.match(harness.status("web")?.containerStatuses?.[0], { image: "sha256:busybox:2", restartCount: 1, ready: true });
});

t.test("PodWorker waits for a ConfigMap that a volume requires", async (t) => {
  await using harness = await podHarness();
  const pod = testPod("web", { volumes: [{ name: "v", configMap: { name: "late" } }] });
  harness.manager.put(pod);
  await harness.run(1);
  t.equal(harness.events[0]?.message, 'MountVolume.SetUp failed for volume "v" : configmap "late" not found');
  t.equal(harness.fake.sandboxes.size, 0);
  harness.objects.set("configMap/default/late", { a: "1" });
  await harness.run(4);
  t.equal(harness.status("web")?.phase, "Running");
});

t.test("PodWorker restarts a container whose liveness probe fails", async (t) => {
  await using harness = await podHarness();
  harness.fake.execs.set("check", { exitCode: 1, stderr: "dead\n" });
  const livenessProbe = { exec: { command: ["check"] }, periodSeconds: 1, failureThreshold: 3 };
  harness.manager.put(testPod("web", { containers: [{ name: "c", image: "busybox:1", livenessProbe }] }));
  await harness.run(6);
  t.equal(harness.events.filter((each) => each.message === "Liveness probe failed: dead\n").length >= 3, true);
  t.ok(harness.events.some((each) => each.message === "Container c failed liveness probe, will be restarted"));
  t.ok((harness.status("web")?.containerStatuses?.[0]?.restartCount ?? 0) >= 1);
});

t.test("PodWorker applies the back-off and the restart policy when probes fail repeatedly", async (t) => {
  await using harness = await podHarness();
  harness.fake.execs.set("check", { exitCode: 1 });
  const livenessProbe = { exec: { command: ["check"] }, periodSeconds: 1, failureThreshold: 1 };
  const containers = [{ name: "c", image: "busybox:1", livenessProbe }];
  harness.manager.put(testPod("web", { restartPolicy: "OnFailure", containers }));
  await harness.run(15);
  t.equal(harness.fake.calls.filter(({ method }) => method === "startContainer").length, 3, "two immediate restarts");
  t.ok(harness.events.some(({ reason }) => reason === "BackOff"));
  t.equal(harness.status("web")?.phase, "Succeeded", "the third run exited with 0 during its back-off");
});

t.test("PodWorker starts an ephemeral container once, in the PID namespace of its target", async (t) => {
  await using harness = await podHarness();
  const pod = testPod("web");
  harness.manager.put(pod);
  await harness.run(1);
  harness.fake.programs.set("debug", { exitAfterMs: 500, exitCode: 3 });
  const ephemeralContainers = [{ name: "debug", image: "busybox:1", targetContainerName: "c" }];
  harness.manager.put({ ...pod, spec: { ...pod.spec, containers: pod.spec?.containers ?? [], ephemeralContainers } });
  await harness.run(1);
  const target = harness.fake.containersNamed("c")[0]?.id;
  const created = harness.fake.calls.findLast(({ method }) => method === "createContainer")?.request;
  t.match(created, {
    config: { linux: { securityContext: { namespaceOptions: { pid: "TARGET", targetId: target } } } },
  });
  await harness.run(20);
  t.equal(harness.fake.containersNamed("debug").length, 1);
  t.match(harness.status("web")?.ephemeralContainerStatuses, [
    { name: "debug", ready: false, restartCount: 0, state: { terminated: { exitCode: 3 } } },
  ]);
  t.equal(harness.status("web")?.phase, "Running");
  t.equal(harness.status("web")?.conditions?.find(({ type }) => type === "Ready")?.status, "True");
});

t.test("PodWorker reports containers as waiting that had not started when the pod was deleted", async (t) => {
  await using harness = await podHarness();
  const pod = testPod("web", { initContainers: [{ name: "i", image: "busybox:1" }] });
  harness.manager.put(pod);
  await harness.run(1);
  const metadata = { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:06Z", deletionGracePeriodSeconds: 5 };
  harness.manager.put({ ...pod, metadata });
  await harness.run(3);
  t.match(harness.status("web")?.initContainerStatuses?.[0]?.state, { terminated: { exitCode: 0 } });
  t.match(harness.status("web")?.containerStatuses?.[0]?.state, { waiting: { reason: "PodInitializing" } });
});

t.test("PodWorker reports a container as not ready until its readiness probe passes", async (t) => {
  await using harness = await podHarness();
  harness.fake.execs.set("check", { exitCode: 1 });
  const readinessProbe = { exec: { command: ["check"] }, periodSeconds: 1 };
  harness.manager.put(testPod("web", { containers: [{ name: "c", image: "busybox:1", readinessProbe }] }));
  await harness.run(2);
  t.equal(harness.status("web")?.phase, "Running");
  t.equal(harness.status("web")?.containerStatuses?.[0]?.ready, false);
  harness.fake.execs.set("check", { exitCode: 0 });
  await harness.run(2);
  t.equal(harness.status("web")?.conditions?.find((each) => each.type === "Ready")?.status, "True");
});

t.test("PodWorker terminates a pod that exceeds its deadline", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web", { activeDeadlineSeconds: 3, terminationGracePeriodSeconds: 1 }));
  await harness.run(6);
  t.match(harness.status("web"), { phase: "Failed", reason: "DeadlineExceeded" });
});

t.test("PodWorker records NetworkNotReady if the node has no network", async (t) => {
  await using harness = await podHarness();
  harness.fake.networkReady = false;
  harness.fake.fail("runPodSandbox", new RuntimeError("UNKNOWN", "cni plugin not initialized"), 2);
  harness.manager.put(testPod("web"));
  harness.manager.put(testPod("host", { hostNetwork: true }));
  await harness.run(1);
  const recorded = (name: string) => harness.events.filter(({ pod }) => pod === name).map(({ reason }) => reason);
  t.same(recorded("web"), ["NetworkNotReady"]);
  t.same(recorded("host"), ["FailedCreatePodSandBox"]);
  const text = harness.events.find(({ reason }) => reason === "NetworkNotReady")?.message ?? "";
  t.match(text, /^network is not ready: container runtime network not ready: NetworkReady=false reason:/);
});

t.test("PodWorker records FailedSync once if the runtime cannot report a pod's status", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web"));
  await harness.run(1);
  harness.fake.fail("listContainers", new RuntimeError("UNKNOWN", "broken"), 3);
  for (let count = 0; count < 4; count++) {
    harness.manager.onRuntimeChange("web");
    await harness.run(1);
  }
  const recorded = () => harness.events.filter(({ reason }) => reason === "FailedSync").map(({ message }) => message);
  t.same(recorded(), ["error determining status: rpc error: code = Unknown desc = broken"]);
  harness.fake.fail("listContainers", new RuntimeError("UNAVAILABLE", "away"), 3);
  await harness.run(2);
  t.equal(recorded().length, 1, "the node's conditions report a runtime that cannot be reached");
});

t.test("PodWorker kills a container whose postStart hook fails", async (t) => {
  await using harness = await podHarness();
  harness.fake.execs.set("hook", { exitCode: 1 });
  const lifecycle = { postStart: { exec: { command: ["hook"] } } };
  harness.manager.put(testPod("web", { containers: [{ name: "c", image: "busybox:1", lifecycle }] }));
  await harness.run(1);
  t.ok(harness.events.some((each) => each.reason === "FailedPostStartHook" && each.message === "PostStartHook failed"));
  t.ok(harness.events.some((each) => each.reason === "Killing" && each.message === "FailedPostStartHook"));
  t.match(harness.status("web")?.containerStatuses?.[0]?.state?.waiting, { reason: "PostStartHookError" });
});

t.test("PodWorker leaves no timer running when it stops", async (t) => {
  const harness = await podHarness();
  harness.manager.put(testPod("web", { activeDeadlineSeconds: 100 }));
  await harness.run(1);
  await harness[Symbol.asyncDispose]();
  t.equal(harness.clock.pending, 0);
});

t.test("PodWorker calls the runtime only when there may be a change", async (t) => {
  await using harness = await podHarness();
  let listings = 0;
  const { listContainers } = harness.fake.runtime;
  const counted: typeof listContainers = (request, signal) => {
    listings++;
    return listContainers(request, signal);
  };
  Object.assign(harness.fake.runtime, { listContainers: counted });
  const settled = async (): Promise<number> => {
    do await harness.clock.advance(0);
    while (harness.manager.worker("uid-web")?.isIdle === false);
    return listings;
  };
  harness.manager.put(testPod("web"));
  t.equal(await settled(), 1, "one listing before the start; the created sandbox and container are requested by id");
  t.equal(harness.status("web")?.phase, "Running");

  const pod = { ...testPod("web"), status: harness.status("web") };
  harness.manager.put({ ...pod, metadata: { ...pod.metadata, resourceVersion: "7" } });
  t.equal(await settled(), 1, "its own status from the watch is no change");
  const observed = harness.manager.worker("uid-web")?.observation ?? { sandboxes: [], containers: [] };
  await harness.clock.advance(10);
  const now = harness.clock.monotonic();
  t.equal(harness.manager.compareListing("uid-web", digestOf(observed), now), true);
  t.equal(await settled(), 1, "a listing equal to the observation is no change");
  t.equal(harness.manager.compareListing("uid-web", digestOf({ ...observed, containers: [] }), now - 20), false);
  t.equal(await settled(), 1, "an older listing is ignored");
  t.equal(harness.manager.compareListing("uid-web", digestOf({ ...observed, containers: [] }), now), true);
  t.equal(await settled(), 2, "a different listing causes one observation");
  harness.manager.put({ ...pod, metadata: { ...pod.metadata, labels: { a: "b" } } });
  t.equal(await settled(), 3, "a changed pod causes one observation");
});

t.test("PodWorker updates the condition Ready when another client writes a readiness gate's condition", async (t) => {
  await using harness = await podHarness();
  const pod = testPod("web", { readinessGates: [{ conditionType: "example.com/open" }] });
  const ready = () => harness.status("web")?.conditions?.find(({ type }) => type === "Ready");
  harness.manager.put(pod);
  await harness.run(1);
  t.match(ready(), { status: "False", reason: "ReadinessGatesNotReady" });
  const conditions = [{ type: "example.com/open", status: "True" }];
  harness.manager.put({ ...pod, status: { conditions } });
  t.match(ready(), { status: "True" }, "at once");
  await harness.run(2);
  t.match(ready(), { status: "True" });
});

t.test("PodWorker continues the count of runs from the logs of runs that the runtime lost", async (t) => {
  await using harness = await podHarness();
  const logs = join(harness.rootDir, "logs", "default_web_uid-web", "c");
  await mkdir(logs, { recursive: true });
  for (const name of ["0.log", "2.log.20260101-000000.gz", "9.txt"]) await writeFile(join(logs, name), "");
  harness.manager.put(testPod("web"));
  await harness.run(1);
  t.equal(harness.status("web")?.containerStatuses?.[0]?.restartCount, 3);
});
