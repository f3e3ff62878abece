/** CPUs of real containers under the static policy. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import t from "tap";
import { startAgent } from "../../agent/agent.ts";
import type { AgentConfig } from "../../agent/agent-config.ts";
import type { ResourceRequirements } from "../../api/core/resources/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { listCpuScenarios } from "../../testing/agent/cpu-scenarios.ts";
import { createAgentConfig, findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";

const missing = await findMissing();
const skip = missing.length > 0 ? `needs ${missing.join(", ")}` : availableParallelism() !== 2 && "needs two CPUs";

/** The CPUs that the container's process may use, as it last logged them. */
function readCpus(logs: string, pod: string): string {
  const directory = readdirSync(logs).find((name) => name.startsWith(`default_${pod}-`));
  if (directory === undefined) return "";
  const path = join(logs, directory, "c");
  const files = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith(".log")) : [];
  const text = files.map((name) => readFileSync(join(path, name), "utf8")).join("");
  return /Cpus_allowed_list:\s*(\S+)\n$/.exec(text)?.[1] ?? "";
}

t.test(
  "a Guaranteed pod has its own CPU; the others leave it and get it back; so have those of the documentation",
  { skip, timeout: 120_000 },
  async (t) => {
    await using containerd = await startPrivateContainerd();
    const directory = containerd.directory;
    const manifests = join(directory, "manifests");
    mkdirSync(manifests);
    const base = createAgentConfig(containerd, directory);
    const config: AgentConfig = {
      ...base,
      node: { ...base.node, reserved: { cpu: "1" } },
      resources: { ...base.resources, cpu: { ...base.resources.cpu, policy: "static", reconcileMs: 1_000 } },
      sources: { ...base.sources, manifestPath: manifests, fileCheckMs: 500 },
    };
    const putWith = (name: string, resources: ResourceRequirements): void => {
      const container = {
        name: "c",
        image: containerd.image,
        imagePullPolicy: "Never",
        command: ["sh", "-c", "trap exit TERM; while :; do grep Cpus_allowed_list /proc/self/status; sleep 0.2; done"],
        resources,
      };
      const spec = { terminationGracePeriodSeconds: 1, containers: [container] };
      writeFileSync(
        join(manifests, `${name}.json`),
        JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec }),
      );
    };
    const put = (name: string, list: Readonly<Record<string, string>> = {}): void =>
      putWith(name, { limits: list, requests: list });
    const start = () => startAgent(config, { clock: systemClock, log: silentLogger });
    const has = (pod: string, cpus: string) =>
      until(`${pod} has the CPUs ${cpus}`, () => readCpus(config.podLogsDir, pod) === cpus, { timeoutMs: 30_000 });
    let agent = await start();
    try {
      put("shared");
      await has("shared", "0-1");
      put("pinned", { cpu: "1", memory: "16Mi" });
      await has("pinned", "1");
      await has("shared", "0");
      await agent.close();
      agent = await start();
      put("late");
      await has("late", "0");
      await has("pinned", "1");
      rmSync(join(manifests, "pinned.json"));
      await has("shared", "0-1");
      await has("late", "0-1");
      for (const { title, resources, hasOwnCpus } of listCpuScenarios(1)) {
        const name = title.replaceAll(/\W+/g, "-");
        putWith(name, resources);
        await has(name, hasOwnCpus ? "1" : "0-1");
        await has("shared", hasOwnCpus ? "0" : "0-1");
        rmSync(join(manifests, `${name}.json`));
        await has("shared", "0-1");
      }
      t.match(JSON.parse(readFileSync(join(config.rootDir, "cpu_manager_state"), "utf8")), { defaultCpuSet: "0-1" });
    } finally {
      await agent.close({ stopPods: true });
    }
  },
);
