/** The eviction of a real container that allocates memory fast. */
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t from "tap";
import { startAgent } from "../../agent/agent.ts";
import type { AgentConfig } from "../../agent/agent-config.ts";
import { CgroupTree } from "../../agent/cgroups/cgroup-tree.ts";
import { readMachine } from "../../agent/node/machine/machine.ts";
import { createCgroupReader } from "../../agent/stats/cgroup-reader.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { createAgentConfig, findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { removeCgroups } from "../../testing/agent/remove-cgroups.ts";
import { until } from "../../testing/std/until.ts";

const missing = await findMissing();
const skip = missing.length > 0 && `needs ${missing.join(", ")}`;
const MI = 2 ** 20;
/** Of all pods. */
const LIMIT = 1536 * MI;
const THRESHOLD = 300 * MI;
const hierarchy = "/sys/fs/cgroup";

t.test(
  "a pod that allocates memory fast is evicted within a second, and no other",
  { skip, timeout: 120_000 },
  async (t) => {
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
        api
          .listBelow("/api/v1/namespaces/default/events")
          .find((each) => "reason" in each && each.reason === "Evicted");
      let [exceededAt, evictedAt] = [0, 0];
      for (const end = systemClock.monotonic() + 60_000; evictedAt === 0 && systemClock.monotonic() < end; ) {
        const used = reader.readResources(`${root}/kubepods`)?.workingSet ?? 0;
        if (exceededAt === 0 && LIMIT - used < THRESHOLD) exceededAt = systemClock.monotonic();
        if (findEvent() !== undefined) evictedAt = systemClock.monotonic();
        await setTimeout(5);
      }
      const tookMs = Math.round(evictedAt - exceededAt);
      t.ok(exceededAt > 0 && evictedAt > 0 && tookMs < 1000, `${tookMs} ms from the threshold to the event`);
      await until("its status", () => statusOf("greedy").phase === "Failed", { timeoutMs: 30_000 });
      t.match(statusOf("greedy"), {
        reason: "Evicted",
        message: /^The node was low on resource: memory. Threshold quantity: \w+, available: \w+. Container c was/,
      });
      const disruption = statusOf("greedy").conditions?.find(({ type }) => type === "DisruptionTarget");
      t.match(disruption, { status: "True", reason: "TerminationByKubelet" });
      t.match(findEvent()?.metadata, { annotations: { offending_containers: "c", starved_resource: "memory" } });
      t.equal(statusOf("quiet").phase, "Running");
    } finally {
      await agent.close({ stopPods: true });
      await removeCgroups(root);
    }
  },
);
