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
const flags = [
  "--eviction-hard=nodefs.available<32Mi",
  "--eviction-pressure-transition-period=1s",
  "--minimum-image-ttl-duration=0s",
  "--v=2",
];
const skip = process.getuid?.() !== 0 && "needs root";

t.test("an eviction", { skip, timeout: 900_000 }, async (t) => {
  const steps = await evict(t, Number.POSITIVE_INFINITY);
  for (const wanted of ["RemoveImage", "evictions.json", "Event Evicted", "StopContainer", "StopPodSandbox"]) {
    t.ok(
      steps.some((step) => step.endsWith(wanted)),
      wanted,
    );
  }
  for (const index of steps.keys()) await evict(t, index);
});

async function evict(t: Test, killAt: number): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "svc-kill-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const disk = join(directory, "root");
  mkdirSync(disk);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=64m", "tmpfs", disk]);
  stack.defer(() => void execFileSync("umount", ["-l", disk]));
  const cgroup = `/${basename(directory)}`;
  const agent = stack.use(await KilledAgent.create({ directory, cgroup, program: programs.bundle, flags }));
  agent.fake.imageDirectory = disk;
  agent.fake.addImage("unused:1");
  agent.createPod("quiet");
  const { metadata } = agent.createPod("greedy", { volumes: [{ name: "data", emptyDir: {} }] });
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
  t.match(agent.statusOf("greedy"), { reason: "Evicted", message: /^The node was low on resource: ephemeral-storage/ });
  t.equal(agent.countEvents("Evicted"), 1, `${title}: one event`);
  t.equal(agent.fake.containersNamed("greedy").length, 1, `${title}: not started again`);
  t.ok(runs("quiet") && agent.fake.containersNamed("quiet").length === 1, `${title}: the other pod runs`);
  t.same([...agent.fake.present.keys()], ["busybox:1"], `${title}: unused images are removed`);
  await agent.until("its record is dropped", () => readRecords(disk).length === 0);
  const left = readdirSync(disk).filter((name) => name.endsWith(".tmp"));
  t.same(left, [], `${title}: no file that was not completed`);
  return steps;
}

function readRecords(rootDir: string): readonly unknown[] {
  const path = join(rootDir, "evictions.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as readonly unknown[]) : [];
}
