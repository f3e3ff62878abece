import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import { type Harness, podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { RuntimeError } from "../../runtime/runtime.ts";

type Policy = "Always" | "OnFailure" | "Never";

/** The states of container `c` in the published statuses, without repetitions. */
function states({ statuses }: Harness): readonly string[] {
  const all = statuses.flatMap(({ status }) => {
    const found = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
    const { state, lastState, restartCount } = found.find(({ name }) => name === "c") ?? {};
    const { running, waiting, terminated } = state ?? {};
    const now = running === undefined ? (waiting?.reason ?? terminated?.reason) : "running";
    const last = lastState?.terminated?.reason;
    return [`${now} ${restartCount}${last === undefined ? "" : ` after ${last}`}`];
  });
  return all.filter((each, index) => each !== all[index - 1]);
}

/** As containerd does when it cannot execute a command: the container has exited with 128. */
function failStarts({ fake }: Harness): void {
  const { startContainer } = fake.runtime;
  Object.assign(fake.runtime, {
    async startContainer(request: { readonly containerId: string }) {
      await startContainer(request);
      fake.exit(request.containerId, 128, "StartError");
      throw new RuntimeError("UNKNOWN", "no such file");
    },
  });
}

const hook: Partial<Container> = { lifecycle: { postStart: { exec: { command: ["hook"] } } } };
const container: Container = { name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" };

const cases: readonly {
  readonly failure: "hook" | "start";
  readonly policy: Policy;
  readonly role: "containers" | "initContainers";
  readonly states: readonly string[];
}[] = [
  {
    failure: "hook",
    policy: "Always",
    role: "containers",
    states: ["ContainerCreating 0", "PostStartHookError 0 after Completed", "PostStartHookError 1 after Completed"],
  },
  { failure: "hook", policy: "OnFailure", role: "containers", states: ["ContainerCreating 0", "Completed 0"] },
  { failure: "hook", policy: "Never", role: "containers", states: ["ContainerCreating 0", "Completed 0"] },
  {
    failure: "hook",
    policy: "Never",
    role: "initContainers",
    states: ["PodInitializing 0", "Completed 0", "Completed 1 after Completed"],
  },
  {
    failure: "start",
    policy: "Always",
    role: "containers",
    states: ["ContainerCreating 0", "RunContainerError 0 after StartError", "RunContainerError 1 after StartError"],
  },
  {
    failure: "start",
    policy: "OnFailure",
    role: "containers",
    states: ["ContainerCreating 0", "RunContainerError 0 after StartError", "RunContainerError 1 after StartError"],
  },
  { failure: "start", policy: "Never", role: "containers", states: ["ContainerCreating 0", "StartError 0"] },
  {
    failure: "start",
    policy: "Never",
    role: "initContainers",
    states: ["PodInitializing 0", "StartError 0", "StartError 1 after StartError"],
  },
];

for (const { failure, policy, role, states: expected } of cases) {
  t.test(`starting reports a ${failure} that fails, ${policy}, ${role}, without the states in between`, async (t) => {
    await using harness = await podHarness();
    if (failure === "start") failStarts(harness);
    harness.fake.execs.set("hook", { exitCode: 1 });
    harness.fake.programs.set("c", { stopCode: 0 });
    const spec: Container = { ...container, ...(failure === "hook" ? hook : {}) };
    const pod =
      role === "containers"
        ? testPod("web", { restartPolicy: policy, containers: [spec] })
        : testPod("web", {
            restartPolicy: policy,
            initContainers: [{ ...spec, restartPolicy: "Always" }],
            containers: [{ ...container, name: "app" }],
          });
    harness.manager.put(pod);
    await harness.run(5);
    t.same(states(harness), expected);
    await harness.run(15);
    // As in Kubernetes, a pod that does not restart shows how its sidecar ended, although that restarts.
    const isRestarted = policy !== "Never" && expected.length > 2;
    t.equal(states(harness).includes(`CrashLoopBackOff 1 after ${expected.at(-1)?.split(" ").at(-1)}`), isRestarted);
  });
}

t.test("starting shows a container as running when its postStart hook has completed, and probes it then", async (t) => {
  await using harness = await podHarness();
  const release = harness.fake.hold("execSync");
  const readinessProbe = { tcpSocket: { port: 1, host: "127.0.0.1" }, periodSeconds: 1 };
  harness.manager.put(testPod("web", { containers: [{ ...container, ...hook, readinessProbe }] }));
  await harness.run(200);
  t.equal(harness.fake.containersNamed("c")[0]?.status.state, "CONTAINER_RUNNING");
  t.same(states(harness), ["ContainerCreating 0"], "however long the hook runs");
  t.notOk(harness.events.some(({ reason }) => reason === "Unhealthy"));
  release();
  await harness.run(3);
  t.same(states(harness), ["ContainerCreating 0", "running 0"]);
});

t.test("starting shows a restart when the postStart hook of the new run has completed", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", (attempt) => (attempt === 0 ? { exitAfterMs: 1500, exitCode: 3 } : {}));
  harness.manager.put(testPod("web", { containers: [{ ...container, ...hook }] }));
  await harness.run(1);
  const release = harness.fake.hold("execSync");
  await harness.run(10);
  t.same(states(harness), ["ContainerCreating 0", "running 0", "Error 0"]);
  release();
  await harness.run(2);
  t.equal(states(harness).at(-1), "running 1 after Error");
});

t.test("running gives each container its first start before it restarts another one", async (t) => {
  await using harness = await podHarness();
  harness.fake.execs.set("hook", { exitCode: 1 });
  const names = ["a", "b", "c"];
  harness.manager.put(testPod("web", { containers: names.map((name) => ({ ...container, name, ...hook })) }));
  await harness.run(2);
  const created = harness.events.filter(({ reason }) => reason === "Created").map((each) => each.container);
  t.same(created, [...names, ...names]);
});

for (const { policy, state } of [
  { policy: "Always", state: { waiting: { reason: "RunContainerError" } } },
  { policy: "Never", state: { terminated: { reason: "StartError", exitCode: 128 } } },
] as const) {
  t.test(
    `starting shows why an ephemeral container of a pod with ${policy} did not start, and does not repeat it`,
    async (t) => {
      await using harness = await podHarness();
      const pod = testPod("web", { restartPolicy: policy });
      harness.manager.put(pod);
      await harness.run(2);
      failStarts(harness);
      const ephemeralContainers = [{ ...container, name: "debug" }];
      harness.manager.put({ ...pod, spec: { containers: [container], ...pod.spec, ephemeralContainers } });
      await harness.run(30);
      const { ephemeralContainerStatuses = [], phase } = harness.status("web") ?? {};
      t.match(ephemeralContainerStatuses, [{ name: "debug", restartCount: 0, state }]);
      t.equal(phase, "Running");
      t.equal(harness.fake.containersNamed("debug").length, 1);
    },
  );
}

t.test("starting lets a container of a deleted pod start, which is stopped then", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { stopCode: 0 });
  const release = harness.fake.hold("startContainer");
  const pod = testPod("web", { containers: [container] });
  harness.manager.put(pod);
  await harness.run(2);
  const deletionTimestamp = new Date(harness.clock.now()).toISOString();
  harness.manager.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: 5 } });
  await harness.run(2);
  release();
  await harness.run(3);
  t.match(harness.status("web"), {
    phase: "Succeeded",
    containerStatuses: [{ state: { terminated: { exitCode: 0 } } }],
  });
  t.same(
    harness.events.map(({ reason }) => reason),
    ["Pulled", "Created", "Started", "Killing"],
  );
});
