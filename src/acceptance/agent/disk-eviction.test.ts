/** The eviction of real containers that fill a file system, use up its inodes, or start many processes. */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import t from "tap";
import { startAgent } from "../../agent/agent.ts";
import type { AgentConfig } from "../../agent/agent-config.ts";
import { readProcessLimits } from "../../agent/stats/proc-file.ts";
import type { NodeCondition } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { createAgentConfig, findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";

const run = promisify(execFile);
const missing = await findMissing();
const skip = missing.length > 0 && `needs ${missing.join(", ")}`;
const PROCESSES = 1500;

interface Case {
  readonly resource: string;
  readonly condition: string;
  readonly command: string;
  readonly thresholds: () => Readonly<Record<string, string>>;
}

const cases: readonly Case[] = [
  {
    resource: "ephemeral-storage",
    condition: "DiskPressure",
    command: "busybox dd if=/dev/zero of=/data/f bs=1M count=150",
    thresholds: () => ({ "nodefs.available": "100Mi" }),
  },
  {
    resource: "inodes",
    condition: "DiskPressure",
    command: "cd /data; i=0; while [ $i -lt 3000 ]; do : > $i; i=$((i+1)); done",
    thresholds: () => ({ "nodefs.inodesFree": "3000" }),
  },
  {
    resource: "pids",
    condition: "PIDPressure",
    command: `i=0; while [ $i -lt ${PROCESSES} ]; do sleep 60 & i=$((i+1)); done; wait`,
    thresholds: () => {
      const { running, max } = readProcessLimits();
      return { "pid.available": String(max - running - PROCESSES / 2) };
    },
  },
];

for (const { resource, condition, command, thresholds } of cases) {
  t.test(`a pod that uses up ${resource} is evicted, and no other`, { skip, timeout: 180_000 }, async (t) => {
    await using containerd = await startPrivateContainerd();
    const directory = join(containerd.directory, "agent");
    mkdirSync(directory);
    await run("mount", ["-t", "tmpfs", "-o", "size=230m,nr_inodes=5000", "tmpfs", directory]);
    const base = createAgentConfig(containerd, directory);
    const config: AgentConfig = {
      ...base,
      eviction: { ...base.eviction, hard: thresholds(), transitionMs: 2_000 },
      server: { ...base.server, enabled: false },
    };
    const api = new FakeApi();
    const path = (name: string): string => `/api/v1/namespaces/default/pods/${name}`;
    const put = (name: string, line: string): void => {
      const volumeMounts = [{ name: "data", mountPath: "/data" }];
      const container = { name: "c", image: containerd.image, imagePullPolicy: "Never", volumeMounts };
      api.put(path(name), {
        kind: "Pod",
        metadata: { name, namespace: "default" },
        spec: {
          nodeName: "n1",
          containers: [{ ...container, command: ["sh", "-c", line] }],
          volumes: [{ name: "data", emptyDir: {} }],
        },
      });
    };
    const statusOf = (name: string) => (api.objects.get(path(name)) as Pod | undefined)?.status ?? {};
    const hasPressure = (): boolean => {
      const { conditions = [] } = (api.objects.get("/api/v1/nodes/n1")?.status ?? {}) as {
        conditions?: readonly NodeCondition[];
      };
      return conditions.some(({ type, status }) => type === condition && status === "True");
    };
    const agent = await startAgent(config, { clock: systemClock, log: silentLogger, transport: api.transport });
    try {
      await agent.ready();
      put("quiet", "trap exit TERM; while :; do sleep 0.2; done");
      await until("the first pod runs", () => statusOf("quiet").phase === "Running", { timeoutMs: 30_000 });
      put("greedy", `${command}; sleep 60`);
      await until("the eviction", () => statusOf("greedy").phase === "Failed", { timeoutMs: 60_000 });
      const message = new RegExp(`^The node was low on resource: ${resource}. Threshold quantity: `);
      t.match(statusOf("greedy"), { reason: "Evicted", message });
      await until("the end of the pressure", () => !hasPressure(), { timeoutMs: 30_000 });
      t.equal(statusOf("quiet").phase, "Running");
    } finally {
      await agent.close({ stopPods: true });
      await run("umount", [directory]).catch(() => run("umount", ["-l", directory]));
    }
  });
}
