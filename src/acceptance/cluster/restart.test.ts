/** Pods across a stop, a kill and a restart of svc. */
import { join } from "node:path";
import t, { type Test } from "tap";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, root, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("svc up adopts the pods of a stopped svc up", (t) => testRestart(t, "SIGTERM"));
  t.test("svc up adopts the pods of a killed svc up", (t) => testRestart(t, "SIGKILL"));
}

interface PodState {
  readonly uid: string;
  readonly containerId: string;
  readonly restarts: number;
}

async function testRestart(t: Test, signal: NodeJS.Signals): Promise<void> {
  await using cluster = await TestCluster.create({ program: programs.bundle });
  await cluster.start();
  const example = join(root, "testdata/examples/hello.yaml");
  t.equal((await cluster.kubectl(["apply", "-f", example])).code, 0);
  await cluster.kubectl(["wait", "--for=condition=Ready", "pod/hello", "--timeout=60s"]);
  await cluster.kubectl(["create", "configmap", "kept", "--from-literal=word=yes"]);
  const before = await podState(cluster);
  const linesBefore = await logLines(cluster);

  const code = await cluster.stop(signal);
  t.equal(code, signal === "SIGKILL" ? signal : 0);
  const pid = containerProcess(await cluster.remains());
  t.ok(pid, "the pod keeps running without svc");

  await cluster.start();
  await until("the node to be ready", async () => {
    const { stdout } = await cluster.kubectl(["get", "nodes", "--no-headers"]);
    return / Ready /.test(stdout) ? true : undefined;
  });
  await until("more lines in the log", async () => ((await logLines(cluster)) > linesBefore + 1 ? true : undefined));
  t.same(await podState(cluster), before, "the same pod, the same container, not restarted");
  t.equal(containerProcess(await cluster.remains()), pid, "the same process");
  const kept = await cluster.kubectl(["get", "configmap", "kept", "-o", "jsonpath={.data.word}"]);
  t.equal(kept.stdout, "yes");

  t.equal((await cluster.kubectl(["delete", "pod", "hello"])).code, 0, "an adopted pod can be deleted");
  t.equal(await cluster.stop(), 0);
}

async function podState(cluster: TestCluster): Promise<PodState> {
  const { stdout } = await cluster.kubectl(["get", "pod", "hello", "-o", "json"]);
  const { metadata, status } = JSON.parse(stdout);
  const [container] = status.containerStatuses;
  return { uid: metadata.uid, containerId: container.containerID, restarts: container.restartCount };
}

async function logLines(cluster: TestCluster): Promise<number> {
  return (await cluster.kubectl(["logs", "hello"])).stdout.split("\n").length;
}

/** The process ID of the shim, which lives as long as its pod. */
function containerProcess(remains: readonly string[]): string | undefined {
  return remains.map((line) => /^process (\d+): .*containerd-shim/.exec(line)?.[1]).find((pid) => pid !== undefined);
}
