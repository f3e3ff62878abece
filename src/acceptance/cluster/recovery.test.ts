/** Failures while svc runs, and remains after its end, with containerd and kubectl. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { until } from "../../testing/std/until.ts";
import { command, findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";

const missing = findMissingRequirement();

function pod(name: string, more: object = {}): string {
  const container = { name: "c", image: exampleImage, command: ["sleep", "3600"], ...more };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 1, containers: [container] },
  });
}

async function apply(cluster: TestCluster, ...objects: readonly string[]): Promise<void> {
  for (const input of objects) {
    const { code, stderr } = await cluster.kubectl(["apply", "-f", "-"], { input });
    if (code !== 0) throw new Error(`Cannot apply: ${stderr}`);
  }
}

async function get(cluster: TestCluster, name: string, path: string): Promise<string> {
  return (await cluster.kubectl(["get", "pod", name, "-o", `jsonpath={${path}}`])).stdout;
}

async function ready(cluster: TestCluster, ...names: readonly string[]): Promise<void> {
  const pods = names.map((name) => `pod/${name}`);
  const { code, stderr } = await cluster.kubectl(["wait", "--for=condition=Ready", "--timeout=60s", ...pods]);
  if (code !== 0) throw new Error(`Not ready: ${stderr}`);
}

/** Cgroups of a pod in any hierarchy. */
function cgroupsOf(uid: string): readonly string[] {
  return readdirSync("/sys/fs/cgroup")
    .map((name) => join("/sys/fs/cgroup", name, "kubepods/besteffort", `pod${uid}`))
    .concat(join("/sys/fs/cgroup/kubepods/besteffort", `pod${uid}`))
    .filter((path) => existsSync(path));
}

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("svc up restarts a killed containerd while pods keep running", async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle, flags: ["--stop-pods"] });
    await cluster.start();
    await apply(cluster, pod("kept"));
    await ready(cluster, "kept");
    const before = await get(cluster, "kept", ".status.containerStatuses[0].containerID");
    process.kill(Number(readFileSync(join(cluster.runDir, "containerd.pid"), "utf8")), "SIGKILL");
    await apply(cluster, pod("later"));
    await ready(cluster, "kept", "later");
    t.equal(await get(cluster, "kept", ".status.containerStatuses[0].containerID"), before);
    t.equal(await get(cluster, "kept", ".status.containerStatuses[0].restartCount"), "0");
  });

  t.test(
    "svc up --stop-pods leaves no process, mount, link or cgroup, and the next start runs the pods again",
    async (t) => {
      await using cluster = await TestCluster.create({ program: programs.bundle, flags: ["--stop-pods"] });
      await cluster.start();
      await apply(cluster, pod("a"));
      await ready(cluster, "a");
      const uid = await get(cluster, "a", ".metadata.uid");
      t.not(cgroupsOf(uid).length, 0);
      t.equal(await cluster.stop("SIGINT"), 0);
      t.same(await cluster.remains(), []);
      t.same(cgroupsOf(uid), []);
      await cluster.start();
      await until("a second run", async () =>
        (await get(cluster, "a", ".status.containerStatuses[0].restartCount")) === "1" ? true : undefined,
      );
      await ready(cluster, "a");
    },
  );

  t.test("a pod that waits for a host port starts when the port is free", async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle, flags: ["--stop-pods"] });
    await cluster.start();
    const port = { ports: [{ containerPort: 80, hostPort: 31_080 }] };
    await apply(cluster, pod("first", port));
    await ready(cluster, "first");
    await apply(cluster, pod("second", port));
    const message = '.status.conditions[?(@.type=="PodScheduled")].message';
    await until("the reason", async () => ((await get(cluster, "second", message)) === "" ? undefined : true));
    t.match(await get(cluster, "second", message), /^0\/1 nodes are available: 1 node\(s\) didn't have free ports/);
    await cluster.kubectl(["delete", "pod", "first"]);
    await ready(cluster, "second");
  });

  t.test("svc up reports a directory or a port in use in one line", async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle, flags: ["--stop-pods"] });
    await cluster.start();
    const [svc] = programs.bundle;
    const env = { ...process.env, SVC_NODE: process.execPath };
    const again = await command(svc, ["up", `--data-dir=${cluster.dataDir}`, "--secure-port=1"], { env });
    t.equal(again.code, 1);
    t.match(again.stderr, new RegExp(`already uses it \\(process ${cluster.pid}\\)"\n$`));
    t.equal(again.stderr.trimEnd().split("\n").length, 1);
    await using other = await TestCluster.create({ program: programs.bundle });
    const flags = [`--data-dir=${other.dataDir}`, "--bind-address=127.0.0.1", `--secure-port=${cluster.port}`];
    const taken = await command(svc, ["up", ...flags], { env });
    t.equal(taken.code, 1);
    t.match(taken.stderr, `Cannot listen on port ${cluster.port}: another program uses it`);
    t.same(await other.remains(), []);
  });
}
