/** A node whose pods reach their threshold of memory: what the agent does, with real containers and cgroups. */
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { startAgent } from "../../agent/agent.ts";
import type { AgentConfig } from "../../agent/agent-config.ts";
import { CgroupTree } from "../../agent/cgroups/cgroup-tree.ts";
import { readMachine } from "../../agent/node/machine/machine.ts";
import { createCgroupReader } from "../../agent/stats/cgroup-reader.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { until } from "../std/until.ts";
import { FakeApi } from "./fake-api.ts";
import { createAgentConfig, startPrivateContainerd } from "./private-containerd.ts";
import { removeCgroups } from "./remove-cgroups.ts";

const MI = 2 ** 20;
/** Of all pods. */
const LIMIT = 1536 * MI;
const THRESHOLD = 300 * MI;
const hierarchy = "/sys/fs/cgroup";

export interface MemoryEviction {
  /** From the threshold to the event `Evicted`; undefined: there was none within a minute. */
  readonly tookMs: number | undefined;
  readonly event: ApiObject | undefined;
  /** Of the pod that allocates memory as fast as it can. */
  readonly greedy: NonNullable<Pod["status"]>;
  /** Of a pod that uses little. */
  readonly quiet: NonNullable<Pod["status"]>;
}

/** Needs what `findMissing` lists. */
export async function evictGreedyPod(): Promise<MemoryEviction> {
  await using containerd = await startPrivateContainerd();
  const root = `/svc-evict-${randomBytes(3).toString("hex")}`;
  const isUnified = await new CgroupTree(hierarchy).isUnified();
  for (const name of isUnified ? [""] : readdirSync(hierarchy))
    mkdirSync(join(hierarchy, name, root), { recursive: true });
  const { memoryBytes } = await readMachine();
  const base = createAgentConfig(containerd, containerd.directory);
  const hard = { "memory.available": String(THRESHOLD) };
  const config: AgentConfig = {
    ...base,
    runtime: { ...base.runtime, cgroupRoot: root, systemReserved: { memory: String(memoryBytes - LIMIT) } },
    eviction: { ...base.eviction, hard, enforcesPods: true },
    server: { ...base.server, enabled: false },
  };
  const api = new FakeApi();
  const path = (name: string): string => `/api/v1/namespaces/default/pods/${name}`;
  const put = (name: string, command: string, spec: Partial<PodSpec>): void => {
    const container = { name: "c", image: containerd.image, imagePullPolicy: "Never" as const };
    const volumeMounts = spec.volumes?.map((volume) => ({ name: volume.name, mountPath: "/data" })) ?? [];
    api.put(path(name), {
      kind: "Pod",
      metadata: { name, namespace: "default" },
      spec: { nodeName: "n1", ...spec, containers: [{ ...container, command: ["sh", "-c", command], volumeMounts }] },
    });
  };
  const statusOf = (name: string) => (api.objects.get(path(name)) as Pod | undefined)?.status ?? {};
  const reader = createCgroupReader(hierarchy, isUnified, systemClock);
  const agent = await startAgent(config, { clock: systemClock, log: silentLogger, transport: api.transport });
  try {
    await agent.ready();
    put("quiet", "trap exit TERM; while :; do sleep 0.2; done", {});
    await until("the first pod runs", () => statusOf("quiet").phase === "Running", { timeoutMs: 30_000 });
    const fill = "sleep 1; busybox dd if=/dev/zero of=/data/f bs=1M count=1300; sleep 60";
    put("greedy", fill, { volumes: [{ name: "v", emptyDir: { medium: "Memory" } }] });
    const findEvent = () =>
      api.listBelow("/api/v1/namespaces/default/events").find((each) => "reason" in each && each.reason === "Evicted");
    let [exceededAt, evictedAt] = [0, 0];
    for (const end = systemClock.monotonic() + 60_000; evictedAt === 0 && systemClock.monotonic() < end; ) {
      const used = reader.readResources(`${root}/kubepods`)?.workingSet ?? 0;
      if (exceededAt === 0 && LIMIT - used < THRESHOLD) exceededAt = systemClock.monotonic();
      if (findEvent() !== undefined) evictedAt = systemClock.monotonic();
      await setTimeout(5);
    }
    await until("its status", () => statusOf("greedy").phase === "Failed", { timeoutMs: 30_000 });
    const tookMs = exceededAt > 0 && evictedAt > 0 ? evictedAt - exceededAt : undefined;
    return { tookMs, event: findEvent(), greedy: statusOf("greedy"), quiet: statusOf("quiet") };
  } finally {
    await agent.close({ stopPods: true });
    await removeCgroups(root);
  }
}
