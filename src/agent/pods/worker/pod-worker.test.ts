import t from "tap";
import { type Harness, podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { digestOf } from "../../runtime/observation.ts";
import { RuntimeError } from "../../runtime/runtime.ts";

/** What the first container showed, one after the other, with the count of its restarts. */
function statesOf(at: Harness, pod: string): readonly string[] {
  const all = at.statuses
    .filter((each) => each.pod === pod)
    .map(({ status }) => {
      const { state, restartCount } = status.containerStatuses?.[0] ?? {};
      return `${state?.waiting?.reason ?? state?.terminated?.reason ?? "running"} #${restartCount}`;
    });
  return all.filter((each, place) => each !== all[place - 1]);
}

const reasons = (events: readonly { reason: string }[]) => events.map((each) => each.reason);

t.test("PodWorker starts a pod, reports it as Running, and records events", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("web"));
  await at.run(1);
  const status = at.status("web");
  t.equal(status?.phase, "Running");
  t.same(reasons(at.events), ["Pulled", "Created", "Started"]);
  t.equal(at.events[0]?.message, 'Container image "busybox:1" already present on machine');
  t.equal(status?.conditions?.find((each) => each.type === "Ready")?.status, "True");
  t.equal(status?.podIP, at.fake.sandboxes.values().next().value?.ip);
  t.match(status?.containerStatuses?.[0], { ready: true, started: true, restartCount: 0, containerID: /^fake:\/\// });
});

t.test("PodWorker reports a Never pod that exits with 0 as Succeeded once its sandbox has stopped", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", { exitAfterMs: 1500, exitCode: 0 });
  at.manager.put(testPod("job", { restartPolicy: "Never" }));
  await at.run(3);
  t.equal(at.status("job")?.phase, "Succeeded");
  t.equal(at.status("job")?.containerStatuses?.[0]?.state?.terminated?.reason, "Completed");
  t.equal([...at.fake.sandboxes.values()][0]?.ready, false);
  const phases = at.statuses.map((each) => each.status.phase);
  t.ok(phases.indexOf("Succeeded") > phases.indexOf("Running"));
  t.same(
    at.status("job")?.conditions?.map((each) => [each.type, each.status, each.reason]),
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
  await using at = await podHarness();
  at.fake.programs.set("c", { exitAfterMs: 500, exitCode: 3 });
  at.manager.put(testPod("job", { restartPolicy: "Never" }));
  await at.run(3);
  t.equal(at.status("job")?.phase, "Failed");
  t.equal(at.fake.named("c").length, 1);
});

t.test("PodWorker restarts a crashing container at once, then after 10, 20, 40 s", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", { exitAfterMs: 100, exitCode: 1 });
  at.manager.put(testPod("crash"));
  await at.run(85);
  const starts = at.fake.calls.filter((each) => each.method === "startContainer").length;
  t.equal(starts, 5, "at 0, 1, 12, 33 and 74 s");
  const status = at.status("crash");
  t.equal(status?.containerStatuses?.[0]?.restartCount, 4);
  t.match(status?.containerStatuses?.[0]?.state?.waiting, {
    reason: "CrashLoopBackOff",
    message: "back-off 1m20s restarting failed container=c pod=crash_default(uid-crash)",
  });
  t.equal(status?.phase, "Running");
  t.ok(at.fake.named("c").length <= 2, "no more than one old run is kept");
  t.ok(at.events.some((each) => each.reason === "BackOff" && each.type === "Warning"));
});

t.test("PodWorker reports how a container ended before it reports CrashLoopBackOff", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", { exitAfterMs: 100, exitCode: 1 });
  at.manager.put(testPod("crash"));
  await at.run(30);
  t.same(
    statesOf(at, "crash").filter((state) => !state.startsWith("running")),
    ["ContainerCreating #0", "Error #0", "Error #1", "CrashLoopBackOff #1", "Error #2", "CrashLoopBackOff #2"],
  );
});

t.test("PodWorker resets the restart delay of a container that ran for 10 minutes", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", (attempt) =>
    attempt === 2 ? { exitAfterMs: 700_000 } : { exitAfterMs: 100, exitCode: 1 },
  );
  at.manager.put(testPod("web"));
  await at.run(716);
  const before = at.fake.calls.filter((each) => each.method === "startContainer").length;
  t.equal(before, 4, "the restart after the long run was immediate");
  t.equal(at.status("web")?.containerStatuses?.[0]?.restartCount, 3);
});

t.test("PodWorker runs init containers one after the other before the pod's own", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("i1", { exitAfterMs: 900 });
  at.fake.programs.set("i2", { exitAfterMs: 900 });
  const init = (name: string) => ({ name, image: "busybox:1" });
  at.manager.put(testPod("web", { initContainers: [init("i1"), init("i2")] }));
  await at.run(1);
  t.match(at.status("web")?.containerStatuses?.[0]?.state, { waiting: { reason: "PodInitializing" } });
  t.match(at.status("web")?.conditions?.[1], {
    type: "Initialized",
    status: "False",
    message: "containers with incomplete status: [i2]",
  });
  await at.run(3);
  t.same(
    at.events.filter((each) => each.reason === "Started").map((each) => each.container),
    ["i1", "i2", "c"],
  );
  t.equal(at.status("web")?.phase, "Running");
  t.equal(at.status("web")?.initContainerStatuses?.[0]?.ready, true);
});

t.test("PodWorker reports a Never pod whose init container fails as Failed", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("i", { exitAfterMs: 100, exitCode: 5 });
  at.manager.put(testPod("job", { restartPolicy: "Never", initContainers: [{ name: "i", image: "busybox:1" }] }));
  await at.run(3);
  t.equal(at.status("job")?.phase, "Failed");
  t.equal(at.fake.named("c").length, 0);
});

t.test("PodWorker keeps a sidecar running beside the containers and stops it after them", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", { exitAfterMs: 2000 });
  const sidecar = { name: "s", image: "busybox:1", restartPolicy: "Always" };
  at.manager.put(testPod("job", { restartPolicy: "Never", initContainers: [sidecar] }));
  await at.run(1);
  t.match(at.status("job")?.initContainerStatuses?.[0], { ready: true, started: true });
  await at.run(4);
  t.equal(at.status("job")?.phase, "Succeeded");
  t.equal(at.fake.named("s")[0]?.status.state, "CONTAINER_EXITED");
});

t.test("PodWorker terminates a deleted pod within its grace period and reports that it is finished", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", { stopAfterMs: Number.POSITIVE_INFINITY });
  const pod = testPod("web", { terminationGracePeriodSeconds: 5 });
  at.manager.put(pod);
  await at.run(1);
  const metadata = { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:06Z", deletionGracePeriodSeconds: 5 };
  at.manager.put({ ...pod, metadata });
  await at.run(3);
  t.equal(at.fake.named("c")[0]?.status.state, "CONTAINER_RUNNING", "the grace is not over");
  t.same(at.finished, []);
  await at.run(4);
  t.equal(at.fake.named("c")[0]?.status.exitCode, 137);
  t.same([...new Set(at.finished)], ["web"]);
  t.ok(at.events.some((each) => each.reason === "Killing" && each.message === "Stopping container c"));
  at.manager.delete("uid-web");
  await at.run(1);
  t.same(at.gone, ["web"]);
  t.equal(at.fake.sandboxes.size, 0);
  t.equal(at.fake.containers.size, 0);
});

t.test("PodWorker shortens the grace period when a second delete request has a shorter one", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", { stopAfterMs: Number.POSITIVE_INFINITY });
  const pod = testPod("web");
  at.manager.put(pod);
  await at.run(1);
  const deleted = (seconds: number) => ({
    ...pod,
    metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:01:00Z", deletionGracePeriodSeconds: seconds },
  });
  at.manager.put(deleted(600));
  await at.run(2);
  t.equal(at.fake.named("c")[0]?.status.state, "CONTAINER_RUNNING");
  at.manager.put(deleted(2));
  await at.run(4);
  t.equal(at.fake.named("c")[0]?.status.state, "CONTAINER_EXITED");
});

t.test("PodWorker adopts running containers after the agent was killed, and starts none twice", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", (attempt) => (attempt === 0 ? { exitAfterMs: 100, exitCode: 1 } : {}));
  const pod = testPod("web");
  at.manager.put(pod);
  await at.run(3);
  t.equal(at.status("web")?.containerStatuses?.[0]?.restartCount, 1);
  await at.manager.close({ stopPods: false, graceSeconds: 0 });
  const starts = () => at.fake.calls.filter((each) => each.method === "startContainer").length;
  const before = starts();
  const manager = at.restart();
  manager.put({ ...pod, status: at.status("web") });
  await at.run(3);
  t.equal(starts(), before);
  t.match(at.status("web")?.containerStatuses?.[0], { restartCount: 1, ready: true });
  t.match(at.status("web")?.containerStatuses?.[0]?.lastState, { terminated: { exitCode: 1 } });
});

t.test("PodWorker takes over restart delays and probe results from the agent before it", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", { exitAfterMs: 100, exitCode: 1 });
  const crash = testPod("crash");
  at.manager.put(crash);
  await at.run(36);
  const starts = () => at.fake.calls.filter((each) => each.method === "startContainer").length;
  t.equal(starts(), 4, "at 0, 1, 12 and 33 s");
  await at.manager.close({ stopPods: false, graceSeconds: 0 });
  at.restart().put({ ...crash, status: at.status("crash") });
  await at.run(30);
  t.equal(starts(), 4, "40 s are not over yet");
  t.match(at.status("crash")?.containerStatuses?.[0]?.state?.waiting, { message: /^back-off 40s / });
  await at.run(12);
  t.equal(starts(), 5);
});

t.test(
  "PodWorker does not repeat startup and readiness probes that passed before a restart of the agent",
  async (t) => {
    await using at = await podHarness();
    const exec = { command: ["true"] };
    const probes = { startupProbe: { exec, periodSeconds: 1 }, readinessProbe: { exec, periodSeconds: 1 } };
    const image = "busybox:1";
    const pod = testPod("web", { containers: [{ name: "c", image, imagePullPolicy: "IfNotPresent", ...probes }] });
    at.manager.put(pod);
    await at.run(5);
    t.match(at.status("web")?.containerStatuses?.[0], { ready: true, started: true });
    await at.manager.close({ stopPods: false, graceSeconds: 0 });
    const before = at.statuses.length;
    at.restart().put({ ...pod, status: at.status("web") });
    await at.run(5);
    const later = at.statuses.slice(before).map(({ status }) => status.containerStatuses?.[0]);
    t.ok(later.length > 0 && later.every((each) => each?.ready === true && each.started === true), "it stays ready");
  },
);

t.test("PodWorker completes a start that a crash of the agent interrupted between create and start", async (t) => {
  await using at = await podHarness();
  at.fake.fail("startContainer", new Error("the agent was killed here"));
  const pod = testPod("web");
  at.manager.put(pod);
  await at.run(1);
  await at.manager.close({ stopPods: false, graceSeconds: 0 });
  t.equal(at.fake.named("c")[0]?.status.state, "CONTAINER_CREATED");
  at.restart().put(pod);
  await at.run(2);
  t.equal(at.fake.named("c").length, 1);
  t.match(at.status("web")?.containerStatuses?.[0], { restartCount: 0, ready: true });
});

t.test("PodManager.terminateOrphans() stops pods of the runtime that no source has", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("web", { terminationGracePeriodSeconds: 1 }));
  await at.run(1);
  await at.manager.close({ stopPods: false, graceSeconds: 0 });
  const manager = at.restart();
  manager.terminateOrphans(
    new Map([["uid-web", { uid: "uid-web", name: "web", namespace: "default", running: true, digest: "" }]]),
  );
  await at.run(4);
  t.equal(at.fake.containers.size, 0);
  t.equal(at.fake.sandboxes.size, 0);
});

t.test("PodManager.close() with stopPods stops containers, and a new agent starts them again", async (t) => {
  await using at = await podHarness();
  const pod = testPod("web");
  at.manager.put(pod);
  await at.run(1);
  await at.manager.close({ stopPods: true, graceSeconds: 1 });
  t.equal(at.fake.named("c")[0]?.status.state, "CONTAINER_EXITED");
  at.restart().put({ ...pod, status: at.status("web") });
  await at.run(3);
  t.equal(at.status("web")?.phase, "Running");
  t.equal(at.status("web")?.containerStatuses?.[0]?.restartCount, 1);
  t.ok(at.events.some((each) => each.reason === "SandboxChanged"));
});

t.test("PodWorker reports a failed pull as ErrImagePull, then ImagePullBackOff, and recovers", async (t) => {
  await using at = await podHarness();
  const image = "registry.test/none:1";
  at.manager.put(testPod("web", { containers: [{ name: "c", image, imagePullPolicy: "IfNotPresent" }] }));
  await at.run(0);
  t.match(at.status("web")?.containerStatuses?.[0]?.state?.waiting, { reason: "ErrImagePull" });
  await at.run(3);
  at.fake.pullable.set(image, { id: "sha256:1", size: 7n });
  await at.run(10);
  t.equal(at.status("web")?.phase, "Running");
  t.same(statesOf(at, "web"), ["ContainerCreating #0", "ErrImagePull #0", "ImagePullBackOff #0", "running #0"]);
  const waits = at.statuses.map(({ status }) => status.containerStatuses?.[0]?.state?.waiting);
  t.equal(
    waits.find((waiting) => waiting?.reason === "ImagePullBackOff")?.message,
    `Back-off pulling image "${image}": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "${image}"`,
  );
  const told = at.events.map(({ reason }) => reason);
  t.match(told, ["Pulling", "Failed", "Failed", "BackOff", "Failed"]);
  t.ok(at.events.some((each) => /^Successfully pulled image .* Image size: 7 bytes\.$/.test(each.message)));
});

t.test("PodWorker refuses a pod with an unsupported feature, and names the feature", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("db", { volumes: [{ name: "data", nfs: { server: "x", path: "/" } }] }));
  await at.run(1);
  t.equal(at.status("db")?.phase, "Pending");
  t.match(at.status("db")?.containerStatuses?.[0]?.state?.waiting, {
    reason: "Unsupported",
    message: 'the pod needs volume "data" of type nfs, which this agent does not support',
  });
  t.match(at.events[0], { type: "Warning", reason: "Unsupported" });
  t.equal(at.fake.sandboxes.size, 0);
});

t.test("PodWorker retries while the runtime cannot be reached", async (t) => {
  await using at = await podHarness();
  at.fake.fail("runPodSandbox", new RuntimeError("UNAVAILABLE", "connection refused"), 2);
  at.manager.put(testPod("web"));
  await at.run(15);
  t.equal(at.status("web")?.phase, "Running");
  t.equal(at.events.filter((each) => each.reason === "FailedCreatePodSandBox").length, 2);
  t.equal(
    at.events[0]?.message,
    "Failed to create pod sandbox: rpc error: code = Unavailable desc = connection refused",
  );
});

t.test("PodWorker replaces a container whose image changed", async (t) => {
  await using at = await podHarness();
  at.fake.addImage("busybox:2");
  const pod = testPod("web");
  at.manager.put(pod);
  await at.run(1);
  at.manager.put({ ...pod, spec: { ...pod.spec, containers: [{ name: "c", image: "busybox:2" }] } });
  await at.run(2);
  t.ok(at.events.some((each) => each.message === "Container c definition changed, will be restarted"));
  t.match(at.status("web")?.containerStatuses?.[0], { image: "sha256:busybox:2", restartCount: 1, ready: true });
});

t.test("PodWorker waits for a ConfigMap that a volume requires", async (t) => {
  await using at = await podHarness();
  const pod = testPod("web", { volumes: [{ name: "v", configMap: { name: "late" } }] });
  at.manager.put(pod);
  await at.run(1);
  t.equal(at.events[0]?.message, 'MountVolume.SetUp failed for volume "v" : configmap "late" not found');
  t.equal(at.fake.sandboxes.size, 0);
  at.objects.set("configMap/default/late", { a: "1" });
  await at.run(4);
  t.equal(at.status("web")?.phase, "Running");
});

t.test("PodWorker restarts a container whose liveness probe fails", async (t) => {
  await using at = await podHarness();
  at.fake.execs.set("check", { exitCode: 1, stderr: "dead\n" });
  const livenessProbe = { exec: { command: ["check"] }, periodSeconds: 1, failureThreshold: 3 };
  at.manager.put(testPod("web", { containers: [{ name: "c", image: "busybox:1", livenessProbe }] }));
  await at.run(6);
  t.equal(at.events.filter((each) => each.message === "Liveness probe failed: dead\n").length >= 3, true);
  t.ok(at.events.some((each) => each.message === "Container c failed liveness probe, will be restarted"));
  t.ok((at.status("web")?.containerStatuses?.[0]?.restartCount ?? 0) >= 1);
});

t.test("PodWorker applies the back-off and the restart policy when probes fail repeatedly", async (t) => {
  await using at = await podHarness();
  at.fake.execs.set("check", { exitCode: 1 });
  const livenessProbe = { exec: { command: ["check"] }, periodSeconds: 1, failureThreshold: 1 };
  const containers = [{ name: "c", image: "busybox:1", livenessProbe }];
  at.manager.put(testPod("web", { restartPolicy: "OnFailure", containers }));
  await at.run(15);
  t.equal(at.fake.calls.filter(({ method }) => method === "startContainer").length, 3, "two restarts at once");
  t.ok(at.events.some(({ reason }) => reason === "BackOff"));
  t.equal(at.status("web")?.phase, "Succeeded", "the third run left with 0 while it was to wait");
});

t.test("PodWorker starts an ephemeral container once, in the PID namespace of its target", async (t) => {
  await using at = await podHarness();
  const pod = testPod("web");
  at.manager.put(pod);
  await at.run(1);
  at.fake.programs.set("debug", { exitAfterMs: 500, exitCode: 3 });
  const ephemeralContainers = [{ name: "debug", image: "busybox:1", targetContainerName: "c" }];
  at.manager.put({ ...pod, spec: { ...pod.spec, containers: pod.spec?.containers ?? [], ephemeralContainers } });
  await at.run(1);
  const target = at.fake.named("c")[0]?.id;
  const created = at.fake.calls.findLast(({ method }) => method === "createContainer")?.request;
  t.match(created, {
    config: { linux: { securityContext: { namespaceOptions: { pid: "TARGET", targetId: target } } } },
  });
  await at.run(20);
  t.equal(at.fake.named("debug").length, 1);
  t.match(at.status("web")?.ephemeralContainerStatuses, [
    { name: "debug", ready: false, restartCount: 0, state: { terminated: { exitCode: 3 } } },
  ]);
  t.equal(at.status("web")?.phase, "Running");
  t.equal(at.status("web")?.conditions?.find(({ type }) => type === "Ready")?.status, "True");
});

t.test("PodWorker reports containers as waiting that had not started when the pod was deleted", async (t) => {
  await using at = await podHarness();
  const pod = testPod("web", { initContainers: [{ name: "i", image: "busybox:1" }] });
  at.manager.put(pod);
  await at.run(1);
  const metadata = { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:06Z", deletionGracePeriodSeconds: 5 };
  at.manager.put({ ...pod, metadata });
  await at.run(3);
  t.match(at.status("web")?.initContainerStatuses?.[0]?.state, { terminated: { exitCode: 0 } });
  t.match(at.status("web")?.containerStatuses?.[0]?.state, { waiting: { reason: "PodInitializing" } });
});

t.test("PodWorker reports a container as not ready until its readiness probe passes", async (t) => {
  await using at = await podHarness();
  at.fake.execs.set("check", { exitCode: 1 });
  const readinessProbe = { exec: { command: ["check"] }, periodSeconds: 1 };
  at.manager.put(testPod("web", { containers: [{ name: "c", image: "busybox:1", readinessProbe }] }));
  await at.run(2);
  t.equal(at.status("web")?.phase, "Running");
  t.equal(at.status("web")?.containerStatuses?.[0]?.ready, false);
  at.fake.execs.set("check", { exitCode: 0 });
  await at.run(2);
  t.equal(at.status("web")?.conditions?.find((each) => each.type === "Ready")?.status, "True");
});

t.test("PodWorker terminates a pod that exceeds its deadline", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("web", { activeDeadlineSeconds: 3, terminationGracePeriodSeconds: 1 }));
  await at.run(6);
  t.match(at.status("web"), { phase: "Failed", reason: "DeadlineExceeded" });
});

t.test("PodWorker records NetworkNotReady if the node has no network", async (t) => {
  await using at = await podHarness();
  at.fake.networkReady = false;
  at.fake.fail("runPodSandbox", new RuntimeError("UNKNOWN", "cni plugin not initialized"), 2);
  at.manager.put(testPod("web"));
  at.manager.put(testPod("host", { hostNetwork: true }));
  await at.run(1);
  const told = (name: string) => at.events.filter(({ pod }) => pod === name).map(({ reason }) => reason);
  t.same(told("web"), ["NetworkNotReady"]);
  t.same(told("host"), ["FailedCreatePodSandBox"]);
  const text = at.events.find(({ reason }) => reason === "NetworkNotReady")?.message ?? "";
  t.match(text, /^network is not ready: container runtime network not ready: NetworkReady=false reason:/);
});

t.test("PodWorker records FailedSync once if the runtime cannot report a pod's status", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("web"));
  await at.run(1);
  at.fake.fail("listContainers", new RuntimeError("UNKNOWN", "broken"), 3);
  for (let looks = 0; looks < 4; looks++) {
    at.manager.runtimeChanged("web");
    await at.run(1);
  }
  const told = () => at.events.filter(({ reason }) => reason === "FailedSync").map(({ message }) => message);
  t.same(told(), ["error determining status: rpc error: code = Unknown desc = broken"]);
  at.fake.fail("listContainers", new RuntimeError("UNAVAILABLE", "away"), 3);
  await at.run(2);
  t.equal(told().length, 1, "of a runtime that is away the node tells");
});

t.test("PodWorker kills a container whose postStart hook fails", async (t) => {
  await using at = await podHarness();
  at.fake.execs.set("hook", { exitCode: 1 });
  const lifecycle = { postStart: { exec: { command: ["hook"] } } };
  at.manager.put(testPod("web", { containers: [{ name: "c", image: "busybox:1", lifecycle }] }));
  await at.run(1);
  t.ok(at.events.some((each) => each.reason === "FailedPostStartHook" && each.message === "PostStartHook failed"));
  t.ok(at.events.some((each) => each.reason === "Killing" && each.message === "FailedPostStartHook"));
  t.match(at.status("web")?.containerStatuses?.[0]?.state?.waiting, { reason: "PostStartHookError" });
});

t.test("PodWorker leaves no timer running when it stops", async (t) => {
  const at = await podHarness();
  at.manager.put(testPod("web", { activeDeadlineSeconds: 100 }));
  await at.run(1);
  await at[Symbol.asyncDispose]();
  t.equal(at.clock.pending, 0);
});

t.test("PodWorker calls the runtime only when there may be a change", async (t) => {
  await using at = await podHarness();
  let looks = 0;
  const { listContainers } = at.fake.runtime;
  const counted: typeof listContainers = (request, signal) => {
    looks++;
    return listContainers(request, signal);
  };
  Object.assign(at.fake.runtime, { listContainers: counted });
  const settled = async (): Promise<number> => {
    do await at.clock.advance(0);
    while (at.manager.worker("uid-web")?.isIdle === false);
    return looks;
  };
  at.manager.put(testPod("web"));
  t.equal(await settled(), 1, "before it starts; of the sandbox and the container that it makes it asks by name");
  t.equal(at.status("web")?.phase, "Running");

  const told = { ...testPod("web"), status: at.status("web") };
  at.manager.put({ ...told, metadata: { ...told.metadata, resourceVersion: "7" } });
  t.equal(await settled(), 1, "its own status that comes back is no news");
  const seen = at.manager.worker("uid-web")?.observation ?? { sandboxes: [], containers: [] };
  await at.clock.advance(10);
  const now = at.clock.monotonic();
  t.equal(at.manager.compareListing("uid-web", digestOf(seen), now), true);
  t.equal(await settled(), 1, "nor is a listing of what it has seen");
  t.equal(at.manager.compareListing("uid-web", digestOf({ ...seen, containers: [] }), now - 20), false);
  t.equal(await settled(), 1, "nor one from before that: it is to be told again");
  t.equal(at.manager.compareListing("uid-web", digestOf({ ...seen, containers: [] }), now), true);
  t.equal(await settled(), 2, "another one is, once");
  at.manager.put({ ...told, metadata: { ...told.metadata, labels: { a: "b" } } });
  t.equal(await settled(), 3, "and so is a pod that says something else");
});

t.test("PodWorker updates the condition Ready when another client writes a readiness gate's condition", async (t) => {
  await using at = await podHarness();
  const pod = testPod("web", { readinessGates: [{ conditionType: "example.com/open" }] });
  const ready = () => at.status("web")?.conditions?.find(({ type }) => type === "Ready");
  at.manager.put(pod);
  await at.run(1);
  t.match(ready(), { status: "False", reason: "ReadinessGatesNotReady" });
  const conditions = [{ type: "example.com/open", status: "True" }];
  at.manager.put({ ...pod, status: { conditions } });
  t.match(ready(), { status: "True" }, "at once");
  await at.run(2);
  t.match(ready(), { status: "True" });
});
