/**
 * For tests: everything around a pod fails at every step of its start and its end: the agent is killed, the runtime
 * fails, answers late or not at all, or dies; the API server goes away; clocks are set, the disk fills. Whatever
 * happens, each container runs once, the pod gets ready, and once it is deleted nothing of it is left.
 */
import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { FakeNode, fakeNodeRuntime, WarpedClock } from "./fake-node.ts";
import { type CriMethod, delay, type Fault, type FaultAction, fail, neverRespond } from "./scripted-cri.ts";

export interface FaultCase {
  readonly name: string;
  /** Rejects, or returns what is wrong. */
  readonly run: () => Promise<readonly string[]>;
}

type Step = readonly [method: CriMethod, nth: number];

/** The calls that make a pod of an init container and another one, and those that end it. */
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

/** Milliseconds on the clock of the test that something is away. */
const OUTAGE_MS = 1_500;
const YEAR_MS = 365 * 86_400_000;

/** What may happen at a step. */
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
  "the answer is lost": () => neverRespond,
  "the answer is slow": (node) => delay(node.clock, OUTAGE_MS),
  "the API server goes away": (node) => () => {
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

/** Every mishap at every step, before the runtime acts and after. */
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

/** A pod from start to end, with one mishap on the way. */
async function runPodLifecycle(at: Omit<Fault, "action">, fault: (node: FakeNode) => FaultAction): Promise<readonly string[]> {
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
  return [...(happened ? [] : ["the step was never reached"]), ...findRestarts(node)];
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

/** What is wrong when containers did not run exactly once. */
function findRestarts(node: FakeNode): readonly string[] {
  const often = [...node.startCounts].filter(([, times]) => times !== 1);
  return [...node.violations, ...often.map(([name, times]) => `${name} was started ${times} times`)];
}

type Scenario = (node: FakeNode) => Promise<readonly string[]>;

const scenarios: Readonly<Record<string, Scenario>> = {
  async "a pod that was deleted while the API server was away ends when it is back"(node) {
    startPod(node);
    await node.untilReady("web");
    node.api.isDown = true;
    node.api.delete("/api/v1/namespaces/default/pods/web");
    await node.clock.sleep(OUTAGE_MS);
    if ((await node.findRemains()).length === 0) return ["it was ended while nobody could know"];
    node.api.isDown = false;
    await node.untilGone("web");
    return findRestarts(node);
  },

  async "a pod that was deleted while the agent was dead ends when it is back"(node) {
    startPod(node);
    await node.untilReady("web");
    node.killAgent();
    node.api.delete("/api/v1/namespaces/default/pods/web");
    await node.startAgent();
    await node.untilGone("web");
    return findRestarts(node);
  },

  async "agent, runtime and API server die together and come back one after the other"(node) {
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

  async "an agent that is killed again and again while a pod starts and ends leaves it right"(node) {
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

  async "a disk that is full holds a pod back, and nothing stays when it has room again"(node) {
    const root = join(node.directory, "root");
    node.killAgent();
    // What the killed one had begun to write may still come.
    await rm(root, { recursive: true, force: true, maxRetries: 10 });
    await mkdir(root);
    await promisify(execFile)("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", root]);
    await node.startAgent();
    await writeFile(join(root, "filler"), Buffer.alloc(512 * 1024)).catch(() => undefined);
    startPod(node);
    await node.clock.sleep(OUTAGE_MS);
    if (node.isReady("web")) return ["it is ready without a disk"];
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
          `a crash loop goes on when the clock is set ${how}`,
          async (node: FakeNode) => {
            node.createPod("loop", { containers: [node.container("c", { exitCode: 1, exitAfterMs: 100 })] });
            const count = () => node.getStatus("loop").containerStatuses?.[0]?.restartCount ?? 0;
            await node.until("it waits", () => count() >= 2);
            getWarpedClock(node).set(to(node.clock.now()));
            const since = node.clock.monotonic();
            await node.until("it was started again", () => count() >= 4);
            const tookMs = node.clock.monotonic() - since;
            node.deletePod("loop", 1);
            await node.untilGone("loop");
            return [...node.violations, ...(tookMs < 75_000 ? [] : [`only after ${Math.round(tookMs)} ms`])];
          },
        ] as const,
        [
          `a crash loop goes on when the clock is set ${how} and the agent killed`,
          async (node: FakeNode) => {
            node.createPod("loop", { containers: [node.container("c", { exitCode: 1, exitAfterMs: 100 })] });
            const count = () => node.getStatus("loop").containerStatuses?.[0]?.restartCount ?? 0;
            await node.until("it waits", () => count() >= 2);
            node.killAgent();
            getWarpedClock(node).set(to(node.clock.now()));
            await node.startAgent();
            const since = node.clock.monotonic();
            await node.until("it was started again", () => count() >= 4);
            const tookMs = node.clock.monotonic() - since;
            node.deletePod("loop", 1);
            await node.untilGone("loop");
            return [...node.violations, ...(tookMs < 90_000 ? [] : [`only after ${Math.round(tookMs)} ms`])];
          },
        ] as const,
        [
          `a deadline ends a pod in its time when the clock is set ${how}`,
          async (node: FakeNode) => {
            node.createPod("late", { containers: [node.container("c", {})], activeDeadlineSeconds: 20 });
            await node.untilReady("late");
            const since = node.clock.monotonic();
            getWarpedClock(node).set(to(node.clock.now()));
            await node.until("it has failed", () => node.getStatus("late").phase === "Failed");
            const tookMs = node.clock.monotonic() - since;
            node.deletePod("late", 1);
            await node.untilGone("late");
            const isInTime = tookMs > 10_000 && tookMs < 40_000;
            return [...node.violations, ...(isInTime ? [] : [`after ${Math.round(tookMs)} ms`])];
          },
        ] as const,
        [
          `a container that fails after the clock was set ${how} is started again, once`,
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
          `probes go on when the clock is set ${how}`,
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

/** What is more than one step. */
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

/** So many at a time; resolves with a line for each case that went wrong. */
export async function runCases(cases: readonly FaultCase[], jobs: number): Promise<readonly string[]> {
  const queue = [...cases];
  const wrong: string[] = [];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const found = await next.run().catch((error: unknown) => [String(error)]);
      wrong.push(...found.map((what) => `${next.name}: ${what}`));
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return wrong;
}
