/**
 * The agent process is killed at each step of an eviction, with the collection of images before it: after its restart
 * the pod ends with the eviction's status and one event, and no other pod is evicted.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import t, { type Test } from "tap";
import { KilledAgent } from "../../testing/agent/killed-agent.ts";
import { programs } from "../cluster/cluster.ts";

const MIB = 2 ** 20;
const COMMON_FLAGS = ["--eviction-pressure-transition-period=1s", "--minimum-image-ttl-duration=0s", "--v=2"];
const skip = process.getuid?.() !== 0 && "needs root";

interface Cause {
  readonly flags: readonly string[];
  readonly emptyDir: object;
  readonly message: RegExp;
  /** Whether the pod gets the condition `DisruptionTarget`. */
  readonly isDisruption: boolean;
  /** Whether images that no pod uses are removed before. */
  readonly removesImages: boolean;
}

const causes: Readonly<Record<string, Cause>> = {
  "a full disk": {
    flags: ["--eviction-hard=nodefs.available<32Mi"],
    emptyDir: {},
    message: /^The node was low on resource: ephemeral-storage/,
    isDisruption: true,
    removesImages: true,
  },
  "the limit of a volume": {
    flags: ["--eviction-hard=nodefs.available<1Mi"],
    emptyDir: { sizeLimit: "40Mi" },
    message: /^Usage of EmptyDir volume "data" exceeds the limit "40Mi"/,
    isDisruption: false,
    removesImages: false,
  },
};

for (const [name, cause] of Object.entries(causes)) {
  t.test(`an eviction because of ${name}`, { skip, timeout: 900_000 }, async (t) => {
    const steps = await evict(t, cause, Number.POSITIVE_INFINITY);
    const expected = ["evictions.json", "Event Evicted", "StopContainer", "StopPodSandbox"];
    for (const step of cause.removesImages ? ["RemoveImage", ...expected] : expected) {
      t.ok(
        steps.some((each) => each.endsWith(step)),
        step,
      );
    }
    for (const index of steps.keys()) await evict(t, cause, index);
  });
}

async function evict(t: Test, cause: Cause, killAt: number): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "svc-kill-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const disk = join(directory, "root");
  mkdirSync(disk);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=64m", "tmpfs", disk]);
  stack.defer(() => void execFileSync("umount", ["-l", disk]));
  const cgroup = `/${basename(directory)}`;
  const agent = stack.use(
    await KilledAgent.create({ directory, cgroup, program: programs.bundle, flags: [...cause.flags, ...COMMON_FLAGS] }),
  );
  agent.fake.imageDirectory = disk;
  agent.fake.addImage("unused:1");
  agent.createPod("quiet");
  const { metadata } = agent.createPod("greedy", { volumes: [{ name: "data", emptyDir: cause.emptyDir }] });
  await agent.start();
  const runs = (name: string): boolean => agent.statusOf(name).phase === "Running";
  await agent.until("the pods run", () => runs("greedy") && runs("quiet"));
  await agent.kill();
  const podDirectory = join(disk, "pods", metadata?.uid ?? "");
  writeFileSync(join(podDirectory, "volumes/kubernetes.io~empty-dir/data/f"), Buffer.alloc(48 * MIB));
  agent.killAt(killAt);
  agent.watchFiles(disk);
  await agent.start();
  const hasEnded = (): boolean => {
    const isReported = agent.statusOf("greedy").phase === "Failed" && agent.countRunning("greedy") === 0;
    return isReported && !existsSync(join(podDirectory, "volumes/kubernetes.io~empty-dir/data/f"));
  };
  if (Number.isFinite(killAt)) {
    await agent.ended();
    agent.disarm();
    await agent.start();
  }
  await agent.until("the eviction", hasEnded);
  const { steps } = agent;
  agent.disarm();
  const hasPressure = (): boolean =>
    agent.getConditions().some(({ type, status }) => type.endsWith("Pressure") && status === "True");
  await agent.until("the end of the pressure", () => !hasPressure() && agent.countEvents("Evicted") > 0);
  const title = Number.isFinite(killAt) ? `killed ${steps.at(-1)}` : "not killed";
  const status = agent.statusOf("greedy");
  t.match(status, { reason: "Evicted", message: cause.message }, title);
  const isDisrupted = status.conditions?.some(({ type }) => type === "DisruptionTarget") ?? false;
  t.equal(isDisrupted, cause.isDisruption, `${title}: the condition DisruptionTarget`);
  t.equal(agent.countEvents("Evicted"), 1, `${title}: one event`);
  t.equal(agent.fake.containersNamed("greedy").length, 1, `${title}: not started again`);
  t.ok(runs("quiet") && agent.fake.containersNamed("quiet").length === 1, `${title}: the other pod runs`);
  const images = cause.removesImages ? ["busybox:1"] : ["busybox:1", "unused:1"];
  t.same([...agent.fake.present.keys()].sort(), images, `${title}: images`);
  await agent.until("its record is dropped", () => readRecords(disk).length === 0);
  const left = readdirSync(disk).filter((name) => name.endsWith(".tmp"));
  t.same(left, [], `${title}: no file that was not completed`);
  return steps;
}

function readRecords(rootDir: string): readonly unknown[] {
  const path = join(rootDir, "evictions.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as readonly unknown[]) : [];
}
