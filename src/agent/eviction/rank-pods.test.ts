import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { makeEvictionMessage } from "./eviction-message.ts";
import type { PodUsage } from "./pod-usage.ts";
import { rankPods } from "./rank-pods.ts";
import type { Observations, Signal } from "./signals.ts";
import type { Threshold } from "./thresholds.ts";

interface Row {
  readonly requests?: Readonly<Record<string, string>>;
  readonly priority?: number;
  readonly memory?: number;
  readonly processes?: number;
  readonly root?: number;
  readonly logs?: number;
  readonly volumes?: number;
  readonly isUnknown?: boolean;
}

function makePod(name: string, { requests = {}, priority }: Row): Pod {
  const containers = [{ name: "c", resources: { requests } }];
  return { metadata: { name, uid: name }, spec: { containers, ...(priority !== undefined && { priority }) } };
}

const size = (amount = 0) => ({ usedBytes: amount, inodesUsed: amount });

function makeUsage({ memory = 0, processes = 0, root, logs, volumes }: Row): PodUsage {
  const containers = [{ name: "c", memory, root: size(root), logs: size(logs) }];
  return { memory, processes, containers, volumes: size(volumes) };
}

const oneDisk = { hasImageFs: false, isSplit: false };

function rank(signal: Signal, rows: Readonly<Record<string, Row>>, layout = oneDisk): string {
  const entries = Object.entries(rows);
  const pods = entries.map(([name, row]) => ({ pod: makePod(name, row) }));
  const known = entries.filter(([, { isUnknown }]) => isUnknown !== true);
  const usages = new Map(known.map(([name, row]) => [name, makeUsage(row)]));
  return rankPods(pods, usages, signal, layout)
    .map(({ pod }) => pod.metadata?.name)
    .join(" ");
}

t.test("rankPods() ranks by use above requests, priority, and the excess", async (t) => {
  const order = rank("memory.available", {
    guaranteed: { requests: { memory: "500" }, memory: 400 },
    within: { requests: { memory: "500" }, memory: 450, priority: -1 },
    important: { memory: 9000, priority: 10 },
    small: { memory: 10 },
    large: { memory: 900 },
    burst: { requests: { memory: "500" }, memory: 600 },
  });
  t.equal(order, "large burst small important within guaranteed");
  t.equal(rank("allocatableMemory.available", { a: { memory: 1 }, b: { memory: 2 } }), "b a");
});

t.test("rankPods() has pods without figures first", async (t) => {
  const rows = { a: { memory: 100 }, b: { isUnknown: true, priority: 5 }, c: { isUnknown: true, priority: 1 } };
  t.equal(rank("memory.available", rows), "c b a");
  t.equal(rank("pid.available", rows), "a c b", "by priority first, for processes");
});

t.test("rankPods() ranks by priority and number of processes for PIDs", async (t) => {
  const rows = { few: { processes: 1 }, many: { processes: 100 }, high: { processes: 9999, priority: 1 } };
  t.equal(rank("pid.available", rows), "many few high");
});

t.test("rankPods() measures what is on the file system of the signal", async (t) => {
  const rows = { root: { root: 3 }, logs: { logs: 2 }, volumes: { volumes: 1 } };
  const dedicated = { hasImageFs: true, isSplit: false };
  const split = { hasImageFs: true, isSplit: true };
  t.equal(rank("nodefs.available", rows), "root logs volumes");
  t.equal(rank("imagefs.inodesFree", rows), "root logs volumes");
  t.equal(rank("nodefs.available", rows, dedicated), "logs volumes root");
  t.equal(rank("imagefs.available", rows, dedicated), "root logs volumes");
  t.equal(rank("containerfs.inodesFree", rows, dedicated), "root logs volumes");
  t.equal(rank("containerfs.available", { logs: { logs: 9 }, root: { root: 3 } }, split), "logs root");
  for (const signal of ["imagefs.available", "imagefs.inodesFree"] as const) {
    t.equal(rank(signal, { logs: { logs: 9 }, root: { root: 30 } }, split), "logs root", "nothing of pods is there");
  }
  const requested = { free: { root: 50 }, paid: { root: 60, requests: { "ephemeral-storage": "100" } } };
  t.equal(rank("nodefs.available", requested), "free paid");
  t.equal(rank("nodefs.inodesFree", requested), "free paid");
});

t.test("makeEvictionMessage() has Kubernetes' words and annotations", async (t) => {
  const requests = { memory: "64Mi" };
  const pod: Pod = {
    metadata: { name: "web" },
    spec: {
      containers: [
        { name: "over", resources: { requests } },
        { name: "within", resources: { requests } },
      ],
      initContainers: [{ name: "side", restartPolicy: "Always" }],
    },
  };
  const container = (name: string, memory: number) => ({ name, memory, root: size(2048), logs: size(1024) });
  const containers = [container("over", 100 * 2 ** 20), container("within", 2 ** 20), container("side", 3000)];
  const usage: PodUsage = { memory: 0, processes: 0, containers, volumes: size() };
  const threshold = (signal: Signal, value: string): Threshold => ({
    signal,
    value,
    minimumReclaim: undefined,
    graceMs: 0,
  });
  const observations: Observations = new Map([
    ["memory.available", { available: 99 * 2 ** 20, capacity: 2 ** 30, at: 0 }],
    ["nodefs.available", { available: 5000, capacity: 2 ** 30, at: 0 }],
    ["pid.available", { available: 1500, capacity: 32768, at: 0 }],
  ]);
  const thresholds = [threshold("memory.available", "100Mi"), threshold("nodefs.available", "10%")];
  t.same(makeEvictionMessage("memory", pod, usage, thresholds, observations), {
    message:
      "The node was low on resource: memory. Threshold quantity: 100Mi, available: 99Mi. " +
      "Container over was using 100Mi, request is 64Mi, has larger consumption of memory. " +
      "Container side was using 3000, request is 0, has larger consumption of memory. ",
    annotations: {
      offending_containers: "over,side",
      offending_containers_usage: "100Mi,3000",
      starved_resource: "memory",
    },
  });
  const { message } = makeEvictionMessage("ephemeral-storage", pod, usage, thresholds, observations);
  t.match(
    message,
    /^The node was low on resource: ephemeral-storage. Threshold quantity: 107374184, available: 5000. /,
  );
  t.match(message, /Container over was using 3Ki, request is 0, has larger consumption of ephemeral-storage. /);
  const pids = makeEvictionMessage("pids", pod, usage, [threshold("pid.available", "2k")], observations);
  t.equal(pids.message, "The node was low on resource: pids. Threshold quantity: 2k, available: 1500. ");
  t.same(makeEvictionMessage("memory", pod, undefined, [], observations), {
    message: "The node was low on resource: memory. ",
    annotations: {},
  });
});
