import t from "tap";
import type { ContainerStatus } from "../../../api/core/container/status.ts";
import type { PodStatus } from "../../../api/core/pod/schema.ts";
import { testPod } from "../../../testing/agent/pod-harness.ts";
import { emptyObservation, type ObservedContainer } from "../../runtime/observation.ts";
import { computeConditions } from "./pod-conditions.ts";
import { computePodStatus } from "./pod-status.ts";

const now = Date.parse("2026-01-01T00:00:00Z");
const before = "2025-12-31T00:00:00Z";
const noResize = { pending: undefined, isInProgress: false, problem: undefined };

function compute(
  pod: ReturnType<typeof testPod>,
  previous: PodStatus | undefined,
  more: Partial<Parameters<typeof computePodStatus>[0]> = {},
): PodStatus {
  return computePodStatus({
    pod,
    observation: emptyObservation,
    now,
    startTime: now,
    hostIps: ["192.0.2.1"],
    runtimeName: "fake",
    waitingReasons: new Map(),
    isReady: () => false,
    hasStarted: () => false,
    isTerminating: false,
    isReplaced: () => false,
    isTerminated: false,
    hasInitialized: true,
    failure: undefined,
    disruption: undefined,
    previous,
    actualResources: () => undefined,
    resize: noResize,
    ...more,
  });
}

function container(
  name: string,
  state: ContainerStatus["state"],
  more: Partial<ContainerStatus> = {},
): ContainerStatus {
  return { name, image: "busybox:1", imageID: "", ready: false, restartCount: 2, ...(state && { state }), ...more };
}

t.test("computePodStatus() sorts the containers by name, and names them in the order of the spec", async (t) => {
  const containers = ["z", "b", "a"].map((name) => ({ name, image: "busybox:1" }));
  const { containerStatuses, conditions } = compute(testPod("web", { containers }), undefined);
  t.same(
    containerStatuses?.map(({ name }) => name),
    ["a", "b", "z"],
  );
  t.match(conditions, [{}, {}, { type: "Ready", message: "containers with unready status: [z b a]" }]);
});

const lost = { exitCode: 137, reason: "ContainerStatusUnknown" };
const ended = { exitCode: 3, reason: "Error" };
for (const { name, previous, deleted = false, restartCount, last, phase } of [
  { name: "ran", previous: container("c", { running: {} }), restartCount: 3, last: lost, phase: "Running" },
  {
    name: "ran and is deleted",
    previous: container("c", { running: {} }),
    deleted: true,
    restartCount: 2,
    last: lost,
    phase: "Running",
  },
  {
    name: "ran again",
    previous: container("c", { running: {} }, { lastState: { terminated: ended } }),
    restartCount: 2,
    last: ended,
    phase: "Running",
  },
  { name: "waited", previous: container("c", { waiting: {} }), restartCount: 2, last: undefined, phase: "Pending" },
]) {
  t.test(`computePodStatus() of a container that ${name} and has no record in the runtime`, async (t) => {
    const pod = testPod("web");
    const metadata = { ...pod.metadata, ...(deleted ? { deletionTimestamp: before } : {}) };
    const status = compute({ ...pod, metadata }, { phase: "Running", containerStatuses: [previous] });
    const [found] = status.containerStatuses ?? [];
    t.match(found, { restartCount, state: { waiting: { reason: "ContainerCreating" } } });
    t.match(found?.lastState?.terminated, last);
    t.equal(status.phase, phase);
    const again = compute({ ...pod, metadata }, status);
    t.same(again.containerStatuses, status.containerStatuses, "a later status is the same");
  });
}

for (const { app, expected } of [
  { app: { waiting: { reason: "CrashLoopBackOff" } }, expected: "False" },
  { app: { running: {} }, expected: "True" },
  { app: { terminated: { exitCode: 1 } }, expected: "True" },
]) {
  t.test(
    `the condition Initialized with a restarting sidecar and ${Object.keys(app)[0]} containers is ${expected}`,
    async (t) => {
      const sidecar = { name: "s", image: "busybox:1", restartPolicy: "Always" as const };
      const pod = testPod("web", { initContainers: [sidecar] });
      const input = { pod, observation: emptyObservation, now, disruption: undefined, resize: noResize };
      const inits = [container("s", { waiting: {} }, { started: false, containerID: "fake://1" })];
      const apps = [container("c", app, { containerID: "fake://2" })];
      const all = computeConditions({ ...input, isTerminated: false, previous: undefined }, "Running", inits, apps);
      t.match(
        all.find(({ type }) => type === "Initialized"),
        { status: expected },
      );
    },
  );
}

const pending = { reason: "Deferred", message: "Node didn't have enough resource: cpu" };
const after = "2026-01-01T00:00:00Z";
for (const { name, was, times } of [
  { name: "new", was: undefined, times: [after, after] },
  { name: "unchanged", was: pending, times: [before, before] },
  { name: "with another message", was: { ...pending, message: "" }, times: [after, before] },
  { name: "with another reason", was: { ...pending, reason: "Infeasible" }, times: [after, after] },
] as const) {
  t.test(`the times of a condition of a resize that is ${name}`, async (t) => {
    const old = { type: "PodResizePending", status: "True", ...was, lastProbeTime: before, lastTransitionTime: before };
    const input = { pod: testPod("web"), observation: emptyObservation, now, disruption: undefined };
    const resize = { ...noResize, pending };
    const previous = was === undefined ? undefined : { conditions: [old] };
    const [found] = computeConditions({ ...input, isTerminated: false, previous, resize }, "Running", [], []);
    t.match(found, { type: "PodResizePending", ...pending });
    t.same([found?.lastProbeTime, found?.lastTransitionTime], times);
  });
}

function exitedContainer(name: string, exitCode: number): ObservedContainer {
  return {
    id: "1",
    name,
    sandboxId: "sandbox",
    state: "exited",
    createdAt: now,
    startedAt: now,
    finishedAt: now,
    exitCode,
    reason: exitCode === 0 ? "Completed" : "Error",
    message: "",
    image: "busybox:1",
    imageId: "",
    hash: "",
    restartCount: 0,
    logPath: "",
    labels: {},
    annotations: {},
    mounts: [],
  };
}

t.test(
  "computePodStatus() shows how a sidecar ended while it waits for its restart, if it has succeeded",
  async (t) => {
    const sidecar = { name: "s", image: "busybox:1", restartPolicy: "Always" as const };
    const pod = testPod("web", { initContainers: [sidecar] });
    for (const [exitCode, shown] of [
      [0, "terminated"],
      [1, "waiting"],
    ] as const) {
      const observation = { sandboxes: [], containers: [exitedContainer("s", exitCode)] };
      const waitingReasons = new Map([["s", { reason: "CrashLoopBackOff", message: "" }]]);
      const { initContainerStatuses } = compute(pod, undefined, { observation, waitingReasons });
      t.same(Object.keys(initContainerStatuses?.[0]?.state ?? {}), [shown]);
    }
  },
);

t.test(
  "computePodStatus() of a terminated pod without containers shows the first init container as failed",
  async (t) => {
    const initContainers = ["i", "j"].map((name) => ({ name, image: "busybox:1" }));
    const pod = testPod("web", { initContainers });
    const status = compute(pod, undefined, { isTerminated: true, isTerminating: true, hasInitialized: false });
    const stateOf = ({ state }: ContainerStatus) => state?.terminated?.reason ?? state?.waiting?.reason;
    t.same(status.initContainerStatuses?.map(stateOf), ["ContainerStatusUnknown", "PodInitializing"]);
    t.same(status.containerStatuses?.map(stateOf), ["PodInitializing"]);
  },
);

t.test("computePodStatus() shows which mounts the runtime has made recursively read-only", async (t) => {
  const volumeMounts = ["/a", "/b"].map((mountPath) => ({ name: "v", mountPath, readOnly: true }));
  const pod = testPod("web", { containers: [{ name: "c", image: "busybox:1", volumeMounts }] });
  const mounts = [
    { containerPath: "/a", hostPath: "/x", recursiveReadOnly: true },
    { containerPath: "/b", hostPath: "/x" },
  ];
  const observation = { sandboxes: [], containers: [{ ...exitedContainer("c", 0), mounts }] };
  const { containerStatuses } = compute(pod, undefined, { observation });
  t.same(
    containerStatuses?.[0]?.volumeMounts?.map(({ recursiveReadOnly }) => recursiveReadOnly),
    ["Enabled", "Disabled"],
  );
});
