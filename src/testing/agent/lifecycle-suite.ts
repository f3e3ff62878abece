/** Tests of the pod lifecycle with a whole agent, for any runtime. */
import type { Test } from "tap";
import type { ContainerStatus } from "../../api/core/container/status.ts";
import { FakeNode, type NodeRuntime } from "./fake-node.ts";
import type { Program } from "./fake-runtime.ts";

const forever: Program = {};
const ignoresStop: Program = { stopAfterMs: Number.POSITIVE_INFINITY };
const exitsWith = (exitCode: number, exitAfterMs = 300): Program => ({ exitCode, exitAfterMs });

type Scenario = (t: Test, node: FakeNode) => Promise<void>;

function first(node: FakeNode, name: string): ContainerStatus | undefined {
  return node.getStatus(name).containerStatuses?.[0];
}

const scenarios: Readonly<Record<string, Scenario>> = {
  async "a pod starts, becomes ready, and leaves nothing behind after its deletion"(t, node) {
    node.createPod("web", { containers: [node.container("web-c", forever)] });
    await node.untilReady("web");
    t.match(node.getStatus("web"), { phase: "Running", podIP: /^\d+\./ });
    t.match(first(node, "web"), { ready: true, started: true, restartCount: 0, containerID: /^\w+:\/\/./ });
    node.deletePod("web");
    await node.untilGone("web");
    for (const reason of ["Pulled", "Created", "Started", "Killing"]) {
      await node.until(`the event ${reason}`, () => node.eventReasons().includes(reason));
    }
  },

  async "init containers run one after the other, sidecars start before the containers and end after them"(t, node) {
    const order: string[] = [];
    const recordStart = ({ request }: { readonly request: unknown }): void => {
      order.push(String((request as { config?: { metadata?: { name?: string } } }).config?.metadata?.name));
    };
    node.addFault({ method: "CreateContainer", when: "before", action: recordStart });
    node.createPod("ordered", {
      restartPolicy: "Never",
      initContainers: [
        node.container("ordered-i1", exitsWith(0)),
        { ...node.container("ordered-s", forever), restartPolicy: "Always" },
        node.container("ordered-i2", exitsWith(0)),
      ],
      containers: [node.container("ordered-c", exitsWith(0, 1_500))],
    });
    await node.until("the pod has succeeded", () => node.getStatus("ordered").phase === "Succeeded");
    t.same(order, ["ordered-i1", "ordered-s", "ordered-i2", "ordered-c"]);
    const [i1, sidecar, i2] = node.getStatus("ordered").initContainerStatuses ?? [];
    const app = first(node, "ordered");
    t.match(
      [i1, i2].map((each) => each?.state?.terminated?.exitCode),
      [0, 0],
    );
    const end = (each: ContainerStatus | undefined): string => String(each?.state?.terminated?.finishedAt);
    t.ok(end(sidecar) >= end(app), "the sidecar ended after the container");
    node.deletePod("ordered");
    await node.untilGone("ordered");
  },

  async "a pod with restartPolicy Never gets the phase of its containers' exit codes"(t, node) {
    node.createPod("good", { restartPolicy: "Never", containers: [node.container("good-c", exitsWith(0))] });
    node.createPod("bad", { restartPolicy: "Never", containers: [node.container("bad-c", exitsWith(3))] });
    await node.until("one has succeeded", () => node.getStatus("good").phase === "Succeeded");
    await node.until("one has failed", () => node.getStatus("bad").phase === "Failed");
    t.match(first(node, "good")?.state?.terminated, { exitCode: 0, reason: "Completed" });
    t.match(first(node, "bad")?.state?.terminated, { exitCode: 3, reason: "Error" });
    t.equal(first(node, "bad")?.restartCount, 0);
  },

  async "a Never pod whose init container fails does not start its containers"(t, node) {
    node.createPod("noinit", {
      restartPolicy: "Never",
      initContainers: [node.container("noinit-i", exitsWith(5))],
      containers: [node.container("noinit-c", forever)],
    });
    await node.until("the pod has failed", () => node.getStatus("noinit").phase === "Failed");
    t.match(node.getStatus("noinit").initContainerStatuses?.[0]?.state?.terminated, { exitCode: 5 });
    t.equal(first(node, "noinit")?.containerID ?? "", "");
  },

  async "a container that fails is restarted, and its lastState has the exit code"(t, node) {
    node.createPod("again", { containers: [node.container("again-c", exitsWith(7), forever)] });
    await node.until(
      "the second run is ready",
      () => first(node, "again")?.restartCount === 1 && node.isReady("again"),
    );
    t.match(first(node, "again")?.lastState?.terminated, { exitCode: 7, reason: "Error" });
    node.deletePod("again");
    await node.untilGone("again");
  },

  async "a container in a crash loop is in back-off, which a new agent continues"(t, node) {
    node.createPod("loop", { containers: [node.container("loop-c", exitsWith(1, 100))] });
    const restarts = () => first(node, "loop")?.restartCount ?? 0;
    const waiting = () => first(node, "loop")?.state?.waiting;
    const waits = () => waiting()?.reason === "CrashLoopBackOff";
    // The clock may have passed several runs: the first restart is immediate, then each back-off doubles.
    const isDue = () => {
      const written = waiting()?.message ?? "";
      const [, minutes = 0, seconds] =
        /^back-off (?:(\d+)m)?(\d+)s restarting failed container=loop-c pod=loop_default/.exec(written) ?? [];
      t.equal(Number(minutes) * 60 + Number(seconds), Math.min(10 * 2 ** (restarts() - 1), 300), written);
    };
    await node.until("the container is in back-off", waits);
    isDue();
    const count = restarts();
    node.killAgent();
    await node.startAgent();
    await node.until("the container was restarted", () => restarts() > count);
    await node.until("the container is in back-off again", waits);
    isDue();
    node.deletePod("loop");
    await node.untilGone("loop");
  },

  async "OnFailure restarts containers that failed, and none that succeeded"(t, node) {
    node.createPod("retry", {
      restartPolicy: "OnFailure",
      containers: [node.container("retry-c", exitsWith(2), exitsWith(0))],
    });
    await node.until("the pod has succeeded", () => node.getStatus("retry").phase === "Succeeded");
    t.match(first(node, "retry"), { restartCount: 1, state: { terminated: { exitCode: 0 } } });
  },

  async "a container that ignores its stop signal is killed after the grace period"(t, node) {
    node.createPod("stubborn", { containers: [node.container("stubborn-c", ignoresStop)] });
    await node.untilReady("stubborn");
    const began = node.clock.monotonic();
    node.deletePod("stubborn", 2);
    await node.until("the pod is gone", () => node.getStored("stubborn") === undefined);
    const tookMs = node.clock.monotonic() - began;
    t.ok(tookMs >= 1_900, `not before (${Math.round(tookMs)} ms)`);
    await node.untilGone("stubborn");
  },

  async "a second delete request shortens the grace period"(t, node) {
    node.createPod("hasty", {
      terminationGracePeriodSeconds: 600,
      containers: [node.container("hasty-c", ignoresStop)],
    });
    await node.untilReady("hasty");
    node.deletePod("hasty", 600);
    await node.until("the container is being stopped", () => node.cri.calls.includes("StopContainer"));
    node.deletePod("hasty", 1);
    await node.untilGone("hasty");
    t.pass("the pod is gone");
  },

  async "probes decide which containers are ready and which are restarted"(t, node) {
    const every = { periodSeconds: 1, failureThreshold: 1 };
    const readinessProbe = { exec: { command: ["false"] }, ...every };
    const livenessProbe = { exec: { command: ["false"] }, initialDelaySeconds: 2, ...every };
    node.createPod("unready", { containers: [{ ...node.container("unready-c", forever), readinessProbe }] });
    node.createPod("ill", { containers: [{ ...node.container("ill-c", forever), livenessProbe }] });
    await node.until("one was restarted", () => (first(node, "ill")?.restartCount ?? 0) > 0);
    t.match(node.getStatus("unready"), { phase: "Running" });
    t.match(first(node, "unready"), { ready: false, started: true });
    for (const name of ["unready", "ill"]) node.deletePod(name, 1);
    await node.untilGone("unready");
    t.ok(node.eventReasons().includes("Unhealthy"));
  },

  async "a new agent adopts the pods of a killed one, and starts none twice"(t, node) {
    const probe = { exec: { command: ["true"] }, periodSeconds: 1 };
    const container = { ...node.container("kept-c", forever), startupProbe: probe, readinessProbe: probe };
    node.createPod("kept", { containers: [container] });
    await node.untilReady("kept");
    const before = first(node, "kept");
    node.killAgent();
    await node.startAgent();
    await node.until("the new agent has read the container's status", () => node.cri.calls.includes("ContainerStatus"));
    const written = node.clock.now();
    await node.until("3 s have passed", () => node.clock.now() > written + 3_000);
    t.match(first(node, "kept"), { containerID: before?.containerID, restartCount: 0, ready: true });
    node.deletePod("kept");
    await node.untilGone("kept");
  },

  async "pods keep running while the runtime is not reachable"(t, node) {
    node.createPod("calm", { containers: [node.container("calm-c", forever)] });
    await node.untilReady("calm");
    const before = first(node, "calm")?.containerID;
    node.cri.kill();
    node.createPod("later", { containers: [node.container("later-c", forever)] });
    await node.clock.sleep(1_500);
    t.ok(node.isReady("calm"), "the reported status has not changed");
    await node.cri.start();
    await node.untilReady("later");
    t.match(first(node, "calm"), { containerID: before, restartCount: 0 });
    for (const name of ["calm", "later"]) node.deletePod(name);
    await node.untilGone("calm");
  },
};

/** Scenarios that wait for back-off. */
const long = ["a container in a crash loop is in back-off, which a new agent continues"];
const SCENARIO_MS_MAX = 60_000;

export interface LifecycleOptions {
  /** How many scenarios run at a time. */
  readonly jobs: number;
  /** Skips scenarios that take long in real time. */
  readonly short: boolean;
}

/** Runs each scenario on its own node; no container may run twice at the same time. */
export async function lifecycleSuite(t: Test, runtimeOf: () => NodeRuntime, options: LifecycleOptions): Promise<void> {
  t.jobs = options.jobs;
  const selected = Object.entries(scenarios).filter(([title]) => !options.short || !long.includes(title));
  const recorded = selected.map(async ([title, scenario]) => {
    await t.test(title, { buffered: options.jobs > 1, timeout: SCENARIO_MS_MAX }, async (t) => {
      await using runtime = runtimeOf();
      await using node = await FakeNode.create(runtime);
      await node.startAgent();
      await scenario(t, node);
      t.same(node.violations, []);
    });
  });
  await Promise.all(recorded);
}
