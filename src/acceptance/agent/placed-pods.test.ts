/** Real containers with memory of a NUMA node, devices and a graceful shutdown, over containerd. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { startAgent } from "../../agent/agent.ts";
import type { AgentConfig } from "../../agent/agent-config.ts";
import { toShutdownGroups } from "../../agent/node/shutdown/priority-groups.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { type FakeDevicePlugin, makeDevices, startFakeDevicePlugin } from "../../testing/agent/fake-device-plugin.ts";
import { FakeLogind } from "../../testing/agent/fake-logind.ts";
import { createAgentConfig, findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";

const RESOURCE = "example.com/gpu";
/** Logs when the container is stopped. */
const WAIT = `trap 'sleep 1; echo "ended $(date +%s)"; exit 0' TERM; while :; do sleep 0.1; done`;
const CRITICAL = 2_000_000_000;
const missing = await findMissing();
const skip = missing.length > 0 && `needs ${missing.join(", ")}`;

t.test("memory, devices and a shutdown of real containers", { skip, timeout: 120_000 }, async (t) => {
  await using containerd = await startPrivateContainerd();
  const { directory, image } = containerd;
  const manifests = join(directory, "manifests");
  mkdirSync(manifests);
  const base = createAgentConfig(containerd, directory);
  const { resources } = base;
  const config: AgentConfig = {
    ...base,
    resources: {
      ...resources,
      memory: { policy: "Static", reserved: [{ numaNode: 0, limits: { memory: "100Mi" } }] },
      topology: { ...resources.topology, policy: "single-numa-node" },
    },
    sources: { ...base.sources, manifestPath: manifests, fileCheckMs: 200 },
    shutdown: { groups: toShutdownGroups(20_000, 10_000), recordsTimes: true },
  };
  const logind = new FakeLogind();
  const start = () => startAgent(config, { clock: systemClock, log: silentLogger, shutdownNotices: logind });
  const put = (name: string, limits: Readonly<Record<string, string>>, spec: Partial<PodSpec> = {}): void => {
    const script = `echo "devices:$DEVICES "; grep Mems_allowed_list /proc/self/status; ${WAIT}`;
    const container = { name: "c", image, imagePullPolicy: "Never", command: ["sh", "-c", script] };
    const containers = [{ ...container, resources: { limits, requests: limits } }];
    writeFileSync(
      join(manifests, `${name}.json`),
      JSON.stringify({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace: "default" },
        spec: { terminationGracePeriodSeconds: 5, ...spec, containers },
      }),
    );
  };
  const readLog = (pod: string): string => {
    const found = readdirSync(config.podLogsDir).find((name) => name.startsWith(`default_${pod}-`));
    const path = join(config.podLogsDir, found ?? "none", "c");
    try {
      return readdirSync(path)
        .map((name) => readFileSync(join(path, name), "utf8"))
        .join("");
    } catch {
      return "";
    }
  };
  const logs = (pod: string, text: string) =>
    until(`${pod} logs ${text}`, () => readLog(pod).includes(text), { timeoutMs: 30_000 });
  const readState = (name: string) => JSON.parse(readFileSync(join(config.rootDir, name), "utf8")) as object;
  const startPlugin = async (): Promise<FakeDevicePlugin> => {
    const plugin = await startFakeDevicePlugin({
      directory: join(config.rootDir, "device-plugins"),
      resource: RESOURCE,
      devices: makeDevices("gpu", 2, 0),
    });
    await plugin.register();
    return plugin;
  };

  let agent = await start();
  try {
    await using first = await startPlugin();
    put("placed", { cpu: "100m", memory: "32Mi", [RESOURCE]: "1" });
    await logs("placed", "devices:gpu");
    await logs("placed", "Mems_allowed_list:\t0");
    const entries = () => Object.values((readState("memory_manager_state") as { entries: object }).entries);
    t.match(entries(), [{ c: [{ numaAffinity: [0], type: "memory", size: 32 * 2 ** 20 }] }]);
    await agent.close();
    agent = await start();
    // The start removes the sockets of plugins, which begin again, as with kubelet.
    await using second = await startPlugin();
    put("next", { cpu: "100m", memory: "16Mi", [RESOURCE]: "1" }, { priority: CRITICAL });
    await logs("next", "devices:gpu");
    const given = ["placed", "next"].map((pod) => /devices:(\w+)/.exec(readLog(pod))?.[1]);
    t.same(given.sort(), ["gpu0", "gpu1"], "after a restart of the agent no device is given twice");
    t.equal(entries().length, 2);
    const allocations = [first, second].map(({ calls }) => calls.filter((call) => call.startsWith("allocate")).length);
    t.same(allocations, [1, 1]);

    await until("the lock is taken", () => logind.locks === 1);
    logind.notify(true);
    await until("the lock is released", () => logind.locks === 0, { timeoutMs: 30_000 });
    const ends = ["placed", "next"].map((pod) => Number(/ended (\d+)/.exec(readLog(pod))?.[1]));
    t.ok(ends[0] !== undefined && ends[1] !== undefined && ends[0] < ends[1], "the critical pod ends last");
    t.match(readState("graceful_node_shutdown_state"), { startTime: /^20/, endTime: /^20/ });
  } finally {
    await agent.close({ stopPods: true });
  }
});
