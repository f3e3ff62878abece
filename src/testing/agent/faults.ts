/**
 * Fault injection at every step of a pod's start and end: the agent is killed; the runtime fails, responds late or not
 * at all, or dies; the API server is not reachable; clocks are set; the disk fills. In every case each container runs
 * once, the pod becomes ready, and after its deletion nothing of it is left.
 */
import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { FakeNode, fakeNodeRuntime, WarpedClock } from "./fake-node.ts";
import { type CriMethod, delay, type Fault, type FaultAction, fail, neverRespond } from "./scripted-cri.ts";

export interface FaultCase {
  readonly name: string;
  /** Resolves with the violations; rejects when a step fails. */
  readonly run: () => Promise<readonly string[]>;
}

type Step = readonly [method: CriMethod, nth: number];

/** The CRI calls that start a pod with an init container and a container, and those that end it. */
const startSteps: readonly Step[] = [
  ["RunPodSandbox", 1],
  ["PodSandboxStatus", 1],
  ["ImageStatus", 1],
  ["CreateContainer", 1],
  ["StartContainer", 1],
  ["CreateContainer", 2],
  ["StartContainer", 2],
];
const endSteps: readonly Step[] = [
  ["StopContainer", 1],
  ["StopPodSandbox", 1],
  ["RemoveContainer", 1],
  ["RemoveContainer", 2],
  ["RemovePodSandbox", 1],
];

/** Duration of an outage, on the clock of the test. */
const OUTAGE_MS = 1_500;
const YEAR_MS = 365 * 86_400_000;

/** The faults that are injected at a step. */
const faults: Readonly<Record<string, (node: FakeNode) => FaultAction>> = {
  "the agent is killed": (node) => async () => {
    node.killAgent();
    node.recoverAfter(OUTAGE_MS / 3, () => node.startAgent());
    await never;
  },
  "the runtime dies": (node) => async () => {
    const { cri } = node;
    cri.kill();
    await node.clock.sleep(OUTAGE_MS);
    await cri.start();
  },
  "the call fails": () => fail("UNAVAILABLE", "transport is closing"),
  "the response is lost": () => neverRespond,
  "the response is slow": (node) => delay(node.clock, OUTAGE_MS),
  "the API server is not reachable": (node) => () => {
    node.api.isDown = true;
    node.recoverAfter(OUTAGE_MS, () => {
      node.api.isDown = false;
    });
  },
  "the clock is set back to 1970": (node) => () => getWarpedClock(node).set(1_000_000),
  "the clock is set a year ahead": (node) => () => getWarpedClock(node).set(node.clock.now() + YEAR_MS),
};

const never = new Promise<never>(() => undefined);

function getWarpedClock(node: FakeNode): WarpedClock {
  if (node.clock instanceof WarpedClock) return node.clock;
  throw new Error("The clock of this node cannot be set");
}

/** Every fault at every step, before and after the runtime handles the call. */
export function stepCases(): readonly FaultCase[] {
  return Object.entries(faults).flatMap(([fault, act]) =>
    [...startSteps, ...endSteps].flatMap(([method, nth]) =>
      (["before", "after"] as const).map((when) => ({
        name: `${fault} ${when} ${method} ${nth}`,
        run: () => runPodLifecycle({ method, nth, when }, act),
      })),
    ),
  );
}

/** Runs a pod from start to end, with one fault. */
async function runPodLifecycle(
  at: Omit<Fault, "action">,
  fault: (node: FakeNode) => FaultAction,
): Promise<readonly string[]> {
  await using runtime = fakeNodeRuntime();
  await using node = await FakeNode.create(runtime);
  await node.startAgent();
  const isEnding = endSteps.some(([method]) => method === at.method);
  let happened = false;
  const act: FaultAction = async (call) => {
    happened = true;
    await fault(node)(call);
  };
  if (!isEnding) node.addFault({ ...at, action: act });
  startPod(node);
  await node.untilReady("web");
  if (isEnding) node.addFault({ ...at, action: act });
  node.deletePod("web", 1);
  await node.untilGone("web");
  await node.untilRestored();
  await node.untilGone("web");
  return [...(happened ? [] : ["the step was not reached"]), ...findRestarts(node)];
}

function startPod(node: FakeNode): void {
  node.api.put("/api/v1/namespaces/default/secrets/keys", {
    kind: "Secret",
    metadata: { name: "keys", namespace: "default" },
    data: { token: "cw==" },
  } as never);
  const mount = { name: "keys", mountPath: "/keys" };
  node.createPod("web", {
    volumes: process.getuid?.() === 0 ? [{ name: "keys", secret: { secretName: "keys" } }] : [],
    initContainers: [node.container("i", { exitAfterMs: 200 })],
    containers: [{ ...node.container("c", {}), volumeMounts: process.getuid?.() === 0 ? [mount] : [] }],
  });
}

/** The violations, and the containers that were not started exactly once. */
function findRestarts(node: FakeNode): readonly string[] {
  const restarted = [...node.startCounts].filter(([, times]) => times !== 1);
  return [...node.violations, ...restarted.map(([name, times]) => `${name} was started ${times} times`)];
}

type Scenario = (node: FakeNode) => Promise<readonly string[]>;

const scenarios: Readonly<Record<string, Scenario>> = {
  async "a pod deleted while the API server was not reachable ends afterwards"(node) {
    startPod(node);
    await node.untilReady("web");
    node.api.isDown = true;
    node.api.delete("/api/v1/namespaces/default/pods/web");
    await node.clock.sleep(OUTAGE_MS);
    if ((await node.findRemains()).length === 0) return ["the pod was ended before the deletion could be read"];
    node.api.isDown = false;
    await node.untilGone("web");
    return findRestarts(node);
  },

  async "a pod deleted while the agent was dead ends when a new agent starts"(node) {
    startPod(node);
    await node.untilReady("web");
    node.killAgent();
    node.api.delete("/api/v1/namespaces/default/pods/web");
    await node.startAgent();
    await node.untilGone("web");
    return findRestarts(node);
  },

  async "agent, runtime and API server fail together and recover one after the other"(node) {
    startPod(node);
    await node.untilReady("web");
    node.api.isDown = true;
    node.killAgent();
    await node.startAgent();
    node.cri.kill();
    await node.clock.sleep(10_000);
    await node.cri.start();
    await node.clock.sleep(OUTAGE_MS);
    node.api.isDown = false;
    await node.untilReady("web");
    node.deletePod("web", 1);
    await node.untilGone("web");
    return findRestarts(node);
  },

  async "a pod starts and ends correctly while its agent is killed repeatedly"(node) {
    startPod(node);
    for (let times = 0; times < 8; times++) {
      await node.clock.sleep(150 * times);
      if (times === 5) node.deletePod("web", 1);
      node.killAgent();
      await node.startAgent();
    }
    await node.untilGone("web");
    return findRestarts(node);
  },

  async "a pod waits on a full disk, and starts when space is free"(node) {
    const root = join(node.directory, "root");
    node.killAgent();
    // The killed agent may still finish a write.
    await rm(root, { recursive: true, force: true, maxRetries: 10 });
    await mkdir(root);
    await promisify(execFile)("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", root]);
    await node.startAgent();
    await writeFile(join(root, "filler"), Buffer.alloc(512 * 1024)).catch(() => undefined);
    startPod(node);
    await node.clock.sleep(OUTAGE_MS);
    if (node.isReady("web")) return ["the pod is ready on a full disk"];
    await rm(join(root, "filler"));
    await node.untilReady("web");
    node.deletePod("web", 1);
    await node.until("all but the disk is gone", async () => (await node.findRemains()).length === 1);
    return findRestarts(node);
  },

  ...Object.fromEntries(
    [["back to 1970", () => 1_000_000] as const, ["a year ahead", (now: number) => now + YEAR_MS] as const].flatMap(
      ([how, to]) => [
        [
          `a crash loop continues when the clock is set ${how}`,
          async (node: FakeNode) => {
            node.createPod("loop", { containers: [node.container("c", { exitCode: 1, exitAfterMs: 100 })] });
            const count = () => node.getStatus("loop").containerStatuses?.[0]?.restartCount ?? 0;
            await node.until("the container is in back-off", () => count() >= 2);
            getWarpedClock(node).set(to(node.clock.now()));
            const since = node.clock.monotonic();
            await node.until("the container was restarted", () => count() >= 4);
            const tookMs = node.clock.monotonic() - since;
            node.deletePod("loop", 1);
            await node.untilGone("loop");
            return [...node.violations, ...(tookMs < 75_000 ? [] : [`only after ${Math.round(tookMs)} ms`])];
          },
        ] as const,
        [
          `a crash loop continues when the clock is set ${how} and the agent killed`,
          async (node: FakeNode) => {
            node.createPod("loop", { containers: [node.container("c", { exitCode: 1, exitAfterMs: 100 })] });
            const count = () => node.getStatus("loop").containerStatuses?.[0]?.restartCount ?? 0;
            await node.until("the container is in back-off", () => count() >= 2);
            node.killAgent();
            getWarpedClock(node).set(to(node.clock.now()));
            await node.startAgent();
            const since = node.clock.monotonic();
            await node.until("the container was restarted", () => count() >= 4);
            const tookMs = node.clock.monotonic() - since;
            node.deletePod("loop", 1);
            await node.untilGone("loop");
            return [...node.violations, ...(tookMs < 90_000 ? [] : [`only after ${Math.round(tookMs)} ms`])];
          },
        ] as const,
        [
          `activeDeadlineSeconds ends a pod in time when the clock is set ${how}`,
          async (node: FakeNode) => {
            node.createPod("late", { containers: [node.container("c", {})], activeDeadlineSeconds: 20 });
            await node.untilReady("late");
            const since = node.clock.monotonic();
            getWarpedClock(node).set(to(node.clock.now()));
            await node.until("the pod has failed", () => node.getStatus("late").phase === "Failed");
            const tookMs = node.clock.monotonic() - since;
            node.deletePod("late", 1);
            await node.untilGone("late");
            const isInTime = tookMs > 10_000 && tookMs < 40_000;
            return [...node.violations, ...(isInTime ? [] : [`after ${Math.round(tookMs)} ms`])];
          },
        ] as const,
        [
          `a container that fails after the clock was set ${how} is restarted once`,
          async (node: FakeNode) => {
            node.createPod("once", { containers: [node.container("c", { exitCode: 1, exitAfterMs: 3_000 }, {})] });
            await node.untilReady("once");
            getWarpedClock(node).set(to(node.clock.now()));
            await node.until("the second run", () => node.getStatus("once").containerStatuses?.[0]?.restartCount === 1);
            await node.untilReady("once");
            await node.clock.sleep(5_000);
            const times = node.startCounts.get("c");
            node.deletePod("once", 1);
            await node.untilGone("once");
            return [...node.violations, ...(times === 2 ? [] : [`c was started ${times} times`])];
          },
        ] as const,
        [
          `probes continue when the clock is set ${how}`,
          async (node: FakeNode) => {
            const probe = { exec: { command: ["true"] }, initialDelaySeconds: 1, periodSeconds: 1 };
            const pod = (name: string): void =>
              node.createPod(name, { containers: [{ ...node.container(name, {}), readinessProbe: probe }] });
            pod("old");
            await node.untilReady("old");
            getWarpedClock(node).set(to(node.clock.now()));
            node.killAgent();
            await node.startAgent();
            pod("new");
            await node.untilReady("new");
            await node.untilReady("old");
            for (const name of ["old", "new"]) node.deletePod(name, 1);
            await node.untilGone("old");
            return findRestarts(node);
          },
        ] as const,
      ],
    ),
  ),
};

/** Faults that take more than one step. */
export function scenarioCases(): readonly FaultCase[] {
  return Object.entries(scenarios).map(([name, story]) => ({
    name,
    async run() {
      await using runtime = fakeNodeRuntime();
      await using node = await FakeNode.create(runtime);
      await node.startAgent();
      return await story(node);
    },
  }));
}

/** Runs `jobs` cases at a time; resolves with a line for each violation. */
export async function runCases(cases: readonly FaultCase[], jobs: number): Promise<readonly string[]> {
  const queue = [...cases];
  const failures: string[] = [];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const found = await next.run().catch((error: unknown) => [String(error)]);
      failures.push(...found.map((what) => `${next.name}: ${what}`));
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return failures;
}
