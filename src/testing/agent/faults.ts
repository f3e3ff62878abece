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
const starting: readonly Step[] = [
  ["RunPodSandbox", 1],
  ["PodSandboxStatus", 1],
  ["ImageStatus", 1],
  ["CreateContainer", 1],
  ["StartContainer", 1],
  ["CreateContainer", 2],
  ["StartContainer", 2],
];
const ending: readonly Step[] = [
  ["StopContainer", 1],
  ["StopPodSandbox", 1],
  ["RemoveContainer", 1],
  ["RemoveContainer", 2],
  ["RemovePodSandbox", 1],
];

/** Milliseconds on the clock of the test that something is away. */
const AWAY_MS = 1_500;
const YEAR_MS = 365 * 86_400_000;

/** What may happen at a step. */
const faults: Readonly<Record<string, (node: FakeNode) => FaultAction>> = {
  "the agent is killed": (node) => async () => {
    node.killAgent();
    node.later(AWAY_MS / 3, () => node.startAgent());
    await never;
  },
  "the runtime dies": (node) => async () => {
    const { cri } = node;
    cri.kill();
    await node.clock.sleep(AWAY_MS);
    await cri.start();
  },
  "the call fails": () => fail("UNAVAILABLE", "transport is closing"),
  "the answer is lost": () => neverRespond,
  "the answer is slow": (node) => delay(node.clock, AWAY_MS),
  "the API server goes away": (node) => () => {
    node.api.isAway = true;
    node.later(AWAY_MS, () => {
      node.api.isAway = false;
    });
  },
  "the clock is set back to 1970": (node) => () => warped(node).set(1_000_000),
  "the clock is set a year ahead": (node) => () => warped(node).set(node.clock.now() + YEAR_MS),
};

const never = new Promise<never>(() => undefined);

function warped(node: FakeNode): WarpedClock {
  if (node.clock instanceof WarpedClock) return node.clock;
  throw new Error("The clock of this node cannot be set");
}

/** Every mishap at every step, before the runtime acts and after. */
export function stepCases(): readonly FaultCase[] {
  return Object.entries(faults).flatMap(([fault, act]) =>
    [...starting, ...ending].flatMap(([method, nth]) =>
      (["before", "after"] as const).map((when) => ({
        name: `${fault} ${when} ${method} ${nth}`,
        run: () => wholeLife({ method, nth, when }, act),
      })),
    ),
  );
}

/** A pod from start to end, with one mishap on the way. */
async function wholeLife(at: Omit<Fault, "action">, fault: (node: FakeNode) => FaultAction): Promise<readonly string[]> {
  await using runtime = fakeNodeRuntime();
  await using node = await FakeNode.create(runtime);
  await node.startAgent();
  const isEnding = ending.some(([method]) => method === at.method);
  let happened = false;
  const act: FaultAction = async (call) => {
    happened = true;
    await fault(node)(call);
  };
  if (!isEnding) node.on({ ...at, action: act });
  startPod(node);
  await node.ready("web");
  if (isEnding) node.on({ ...at, action: act });
  node.deletePod("web", 1);
  await node.gone("web");
  await node.restored();
  await node.gone("web");
  return [...(happened ? [] : ["the step was never reached"]), ...onceOnly(node)];
}

function startPod(node: FakeNode): void {
  node.api.put("/api/v1/namespaces/default/secrets/keys", {
    kind: "Secret",
    metadata: { name: "keys", namespace: "default" },
    data: { token: "cw==" },
  } as never);
  const mount = { name: "keys", mountPath: "/keys" };
  node.pod("web", {
    volumes: process.getuid?.() === 0 ? [{ name: "keys", secret: { secretName: "keys" } }] : [],
    initContainers: [node.container("i", { exitAfterMs: 200 })],
    containers: [{ ...node.container("c", {}), volumeMounts: process.getuid?.() === 0 ? [mount] : [] }],
  });
}

/** What is wrong when containers did not run exactly once. */
function onceOnly(node: FakeNode): readonly string[] {
  const often = [...node.starts].filter(([, times]) => times !== 1);
  return [...node.wrongs, ...often.map(([name, times]) => `${name} was started ${times} times`)];
}

type Story = (node: FakeNode) => Promise<readonly string[]>;

const stories: Readonly<Record<string, Story>> = {
  async "a pod that was deleted while the API server was away ends when it is back"(node) {
    startPod(node);
    await node.ready("web");
    node.api.isAway = true;
    node.api.delete("/api/v1/namespaces/default/pods/web");
    await node.clock.sleep(AWAY_MS);
    if ((await node.remains()).length === 0) return ["it was ended while nobody could know"];
    node.api.isAway = false;
    await node.gone("web");
    return onceOnly(node);
  },

  async "a pod that was deleted while the agent was dead ends when it is back"(node) {
    startPod(node);
    await node.ready("web");
    node.killAgent();
    node.api.delete("/api/v1/namespaces/default/pods/web");
    await node.startAgent();
    await node.gone("web");
    return onceOnly(node);
  },

  async "agent, runtime and API server die together and come back one after the other"(node) {
    startPod(node);
    await node.ready("web");
    node.api.isAway = true;
    node.killAgent();
    await node.startAgent();
    node.cri.kill();
    await node.clock.sleep(10_000);
    await node.cri.start();
    await node.clock.sleep(AWAY_MS);
    node.api.isAway = false;
    await node.ready("web");
    node.deletePod("web", 1);
    await node.gone("web");
    return onceOnly(node);
  },

  async "an agent that is killed again and again while a pod starts and ends leaves it right"(node) {
    startPod(node);
    for (let times = 0; times < 8; times++) {
      await node.clock.sleep(150 * times);
      if (times === 5) node.deletePod("web", 1);
      node.killAgent();
      await node.startAgent();
    }
    await node.gone("web");
    return onceOnly(node);
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
    await node.clock.sleep(AWAY_MS);
    if (node.isReady("web")) return ["it is ready without a disk"];
    await rm(join(root, "filler"));
    await node.ready("web");
    node.deletePod("web", 1);
    await node.until("all but the disk is gone", async () => (await node.remains()).length === 1);
    return onceOnly(node);
  },

  ...Object.fromEntries(
    [["back to 1970", () => 1_000_000] as const, ["a year ahead", (now: number) => now + YEAR_MS] as const].flatMap(
      ([how, to]) => [
        [
          `a crash loop goes on when the clock is set ${how}`,
          async (node: FakeNode) => {
            node.pod("loop", { containers: [node.container("c", { exitCode: 1, exitAfterMs: 100 })] });
            const count = () => node.status("loop").containerStatuses?.[0]?.restartCount ?? 0;
            await node.until("it waits", () => count() >= 2);
            warped(node).set(to(node.clock.now()));
            const since = node.clock.monotonic();
            await node.until("it was started again", () => count() >= 4);
            const tookMs = node.clock.monotonic() - since;
            node.deletePod("loop", 1);
            await node.gone("loop");
            return [...node.wrongs, ...(tookMs < 75_000 ? [] : [`only after ${Math.round(tookMs)} ms`])];
          },
        ] as const,
        [
          `a crash loop goes on when the clock is set ${how} and the agent killed`,
          async (node: FakeNode) => {
            node.pod("loop", { containers: [node.container("c", { exitCode: 1, exitAfterMs: 100 })] });
            const count = () => node.status("loop").containerStatuses?.[0]?.restartCount ?? 0;
            await node.until("it waits", () => count() >= 2);
            node.killAgent();
            warped(node).set(to(node.clock.now()));
            await node.startAgent();
            const since = node.clock.monotonic();
            await node.until("it was started again", () => count() >= 4);
            const tookMs = node.clock.monotonic() - since;
            node.deletePod("loop", 1);
            await node.gone("loop");
            return [...node.wrongs, ...(tookMs < 90_000 ? [] : [`only after ${Math.round(tookMs)} ms`])];
          },
        ] as const,
        [
          `a deadline ends a pod in its time when the clock is set ${how}`,
          async (node: FakeNode) => {
            node.pod("late", { containers: [node.container("c", {})], activeDeadlineSeconds: 20 });
            await node.ready("late");
            const since = node.clock.monotonic();
            warped(node).set(to(node.clock.now()));
            await node.until("it has failed", () => node.status("late").phase === "Failed");
            const tookMs = node.clock.monotonic() - since;
            node.deletePod("late", 1);
            await node.gone("late");
            const isInTime = tookMs > 10_000 && tookMs < 40_000;
            return [...node.wrongs, ...(isInTime ? [] : [`after ${Math.round(tookMs)} ms`])];
          },
        ] as const,
        [
          `a container that fails after the clock was set ${how} is started again, once`,
          async (node: FakeNode) => {
            node.pod("once", { containers: [node.container("c", { exitCode: 1, exitAfterMs: 3_000 }, {})] });
            await node.ready("once");
            warped(node).set(to(node.clock.now()));
            await node.until("the second run", () => node.status("once").containerStatuses?.[0]?.restartCount === 1);
            await node.ready("once");
            await node.clock.sleep(5_000);
            const times = node.starts.get("c");
            node.deletePod("once", 1);
            await node.gone("once");
            return [...node.wrongs, ...(times === 2 ? [] : [`c was started ${times} times`])];
          },
        ] as const,
        [
          `probes go on when the clock is set ${how}`,
          async (node: FakeNode) => {
            const probe = { exec: { command: ["true"] }, initialDelaySeconds: 1, periodSeconds: 1 };
            const pod = (name: string): void =>
              node.pod(name, { containers: [{ ...node.container(name, {}), readinessProbe: probe }] });
            pod("old");
            await node.ready("old");
            warped(node).set(to(node.clock.now()));
            node.killAgent();
            await node.startAgent();
            pod("new");
            await node.ready("new");
            await node.ready("old");
            for (const name of ["old", "new"]) node.deletePod(name, 1);
            await node.gone("old");
            return onceOnly(node);
          },
        ] as const,
      ],
    ),
  ),
};

/** What is more than one step. */
export function storyCases(): readonly FaultCase[] {
  return Object.entries(stories).map(([name, story]) => ({
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
