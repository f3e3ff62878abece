/**
 * The agent on cgroup v2: this file runs again in a mount namespace with the unified hierarchy at `/sys/fs/cgroup`. On
 * a machine whose controllers belong to cgroup v1, v2 has the others, such as `hugetlb`.
 */
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { startAgent } from "../../agent/agent.ts";
import type { AgentConfig } from "../../agent/agent-config.ts";
import { CgroupTree } from "../../agent/cgroups/cgroup-tree.ts";
import { checkCgroups, readCgroupFacts } from "../../agent/doctor/cgroups.ts";
import { createHostReader } from "../../agent/doctor/host-reader.ts";
import { usesCgroupV1 } from "../../agent/node/machine/machine.ts";
import { createCgroupReader } from "../../agent/stats/cgroup-reader.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { createAgentConfig, findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";

const IN_NAMESPACE = "SVC_TEST_CGROUP_V2";
const hierarchy = "/sys/fs/cgroup";
const MI = 2 ** 20;
const read = (...path: readonly string[]): string => readFileSync(join(hierarchy, ...path), "utf8").trim();

function canMount(): boolean {
  try {
    execFileSync("unshare", ["--mount", "mount", "-t", "cgroup2", "none", hierarchy], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

if (process.env[IN_NAMESPACE] !== undefined) await testUnified();
else if (!canMount()) console.log("# the unified hierarchy of cgroup v2 cannot be mounted here: skipped");
else {
  const file = fileURLToPath(import.meta.url);
  const mounted = `mount -t cgroup2 none ${hierarchy} && exec "$0" "$1"`;
  const env = { ...process.env, [IN_NAMESPACE]: "1" };
  await t.spawn("unshare", ["--mount", "sh", "-c", mounted, process.execPath, file], { env }, "on cgroup v2");
}

async function testUnified(): Promise<void> {
  const root = `/svc-v2-${process.pid}`;
  const tree = new CgroupTree(hierarchy);
  t.teardown(() => tree.remove(root));

  t.test("limits of the controllers that v2 has are set; the kernel's other files are left out", async (t) => {
    t.equal(await usesCgroupV1(), false);
    t.equal(await tree.isUnified(), true);
    const available = read("cgroup.controllers").split(" ");
    await tree.create(`${root}/a/b`);
    const enabled = read(root, "cgroup.subtree_control").split(" ");
    t.equal(enabled.includes("hugetlb"), available.includes("hugetlb"));
    await tree.setLimits(`${root}/a/b`, {
      cpuShares: 512,
      cpuQuotaUs: 50_000,
      memoryBytes: 64 * MI,
      pids: 50,
      hugePages: { "2MB": 4 * MI },
    });
    const expected = { cpu: ["cpu.weight", "20"], memory: ["memory.max", String(64 * MI)], pids: ["pids.max", "50"] };
    for (const [name, [file = "", value]] of Object.entries({
      ...expected,
      hugetlb: ["hugetlb.2MB.max", String(4 * MI)],
    })) {
      const path = join(hierarchy, root, "a/b", file);
      if (available.includes(name)) t.equal(readFileSync(path, "utf8").trim(), value, name);
      else t.notOk(existsSync(path), `${name} belongs to cgroup v1`);
    }
    t.equal(await tree.limitsSwap(), available.includes("memory"), "swap is limited where v2 has the memory");
  });

  t.test("processes are moved, measured, and ended by cgroup.kill", async (t) => {
    const child = spawn("sh", ["-c", "while :; do :; done"]);
    const exited = new Promise((resolve) => child.once("exit", (_code, signal) => resolve(signal)));
    const path = `${root}/a/b`;
    await tree.addProcess(path, child.pid ?? 0);
    t.same(await tree.readProcesses(path), [child.pid]);
    const reader = createCgroupReader(hierarchy, true, systemClock);
    await until("its CPU time", () => (reader.readUsage(path)?.cpu?.totalNs ?? 0) > 20e6);
    writeFileSync(join(hierarchy, path, "cgroup.kill"), "1");
    t.equal(await exited, "SIGKILL");
    await tree.remove(`${root}/a`);
    t.notOk(existsSync(join(hierarchy, root, "a")));
  });

  t.test("doctor finds v2, and the controllers that it lacks", async (t) => {
    const found = checkCgroups(await readCgroupFacts(createHostReader(), false), {
      cgroupDriver: "cgroupfs",
      failCgroupV1: true,
    });
    t.match(found[0], { id: "cgroup-version", severity: "ok", found: "cgroup v2" });
  });

  const missing = await findMissing();
  const skip = missing.length > 0 && `needs ${missing.join(", ")}`;
  t.test("pods run with containerd in cgroups of v2, and are measured there", { skip, timeout: 120_000 }, async (t) => {
    await using containerd = await startPrivateContainerd([], true, writeRuntime);
    const base = createAgentConfig(containerd, containerd.directory);
    mkdirSync(join(hierarchy, root), { recursive: true });
    const config: AgentConfig = {
      ...base,
      // A start on cgroup v1 would be refused.
      runtime: { ...base.runtime, cgroupRoot: root, failCgroupV1: true },
      server: { ...base.server, enabled: false },
    };
    const api = new FakeApi();
    const path = "/api/v1/namespaces/default/pods/web";
    const statusOf = () => (api.objects.get(path) as Pod | undefined)?.status ?? {};
    const deps = { clock: systemClock, log: silentLogger, transport: api.transport };
    let agent = await startAgent(config, deps);
    try {
      await agent.ready();
      const container = { name: "c", image: containerd.image, imagePullPolicy: "Never" };
      const command = ["sh", "-c", "trap exit TERM; while :; do i=$((i+1)); done"];
      const resources = { requests: { cpu: "10m" }, limits: { memory: "64Mi" } };
      api.put(path, {
        kind: "Pod",
        metadata: { name: "web", namespace: "default" },
        spec: { nodeName: "n1", containers: [{ ...container, command, resources }] },
      });
      await until("the pod runs", () => statusOf().phase === "Running", { timeoutMs: 60_000 });
      const burstable = join(hierarchy, root, "kubepods/burstable");
      const [pod = ""] = readdirSync(burstable).filter((name) => name.startsWith("pod"));
      const inner = join(burstable, pod);
      const groups = readdirSync(inner, { withFileTypes: true }).filter((entry) => entry.isDirectory());
      t.equal(groups.length, 2, "of the sandbox and of the container");
      t.equal(readFileSync(join(inner, "hugetlb.2MB.max"), "utf8").trim(), "0", "huge pages that it does not request");
      const reader = createCgroupReader(hierarchy, true, systemClock);
      const podPath = `${root}/kubepods/burstable/${pod}`;
      await until("its CPU time", () => (reader.readUsage(podPath)?.cpu?.totalNs ?? 0) > 50e6);
      await agent.close();
      agent = await startAgent(config, deps);
      await agent.ready();
      t.match(statusOf(), { phase: "Running", containerStatuses: [{ restartCount: 0 }] }, "adopted after a restart");
      await agent.close({ stopPods: true });
      await until("no cgroup of the pod", () => !existsSync(inner), { timeoutMs: 30_000 });
    } finally {
      await agent.close({ stopPods: true });
    }
  });
}

/** runc refuses limits whose controllers v2 lacks here: the program removes them, and passes all else on. */
function writeRuntime(directory: string): string {
  const path = join(directory, "runc-v2");
  const lacking = ["cpu", "memory", "pids"].filter((name) => !read("cgroup.controllers").split(" ").includes(name));
  writeFileSync(
    path,
    `#!${process.execPath}
const { readFileSync, writeFileSync } = require("node:fs");
const { spawnSync } = require("node:child_process");
const words = process.argv.slice(2);
const bundle = words[words.indexOf("--bundle") + 1];
if (words.includes("create")) {
  const file = bundle + "/config.json";
  const config = JSON.parse(readFileSync(file, "utf8"));
  for (const name of ${JSON.stringify(lacking)}) delete config.linux.resources[name];
  if (${lacking.includes("memory")}) delete config.linux.resources.unified;
  writeFileSync(file, JSON.stringify(config));
}
const { status } = spawnSync("runc", words, { stdio: "inherit" });
process.exit(status ?? 1);
`,
  );
  chmodSync(path, 0o755);
  return path;
}
