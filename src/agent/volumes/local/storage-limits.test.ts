import t from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { findStorageExcess, type StorageLimitOptions } from "./storage-limits.ts";

const mebi = 2 ** 20;

function pod(...limits: readonly (string | undefined)[]): Pod {
  const containers = limits.map((limit, index) => ({
    name: `c${index}`,
    ...(limit === undefined ? {} : { resources: { limits: { "ephemeral-storage": limit } } }),
  }));
  return {
    metadata: { name: "p", namespace: "d", uid: "u" },
    spec: {
      containers,
      volumes: [
        { name: "disk", emptyDir: {} },
        { name: "memory", emptyDir: { medium: "Memory" } },
      ],
    },
  };
}

/** MiB written by containers. */
function node(written: readonly number[], volume = 0, hasImageFs = false): StorageLimitOptions {
  return {
    runtime: {
      listContainerStats: async () => ({
        stats: written.map((amount, index) => ({
          attributes: { id: String(index), metadata: { name: `c${index}`, attempt: 0 } },
          writableLayer: { usedBytes: { value: BigInt(amount * mebi) } },
        })),
      }),
    },
    volumes: { path: (_pod, { name }) => `/volumes/${name}` },
    directories: { rootDir: "/agent", podLogsDir: "/logs" },
    measureUsage: async (path) => {
      if (path === "/volumes/disk") return volume * mebi;
      if (path === "/agent/pods/u/etc-hosts") return 4096;
      return path.startsWith("/logs/") ? mebi : 99 * mebi;
    },
    hasImageFs: async () => hasImageFs,
  };
}

t.test("findStorageExcess() counts writable layers, logs and volumes on disk for pods and containers", async (t) => {
  const total = (limit: string) => `Pod ephemeral local storage usage exceeds the total limit of containers ${limit}. `;
  const table: readonly (readonly [Pod, StorageLimitOptions, message: string | undefined, signal?: string])[] = [
    [pod(undefined), node([1000]), undefined],
    [pod("5Mi"), node([3]), undefined],
    [pod("5Mi"), node([4]), total("5Mi"), "ephemeralpodfs.limit"],
    [pod("0"), node([0]), total("0"), "ephemeralpodfs.limit"],
    [pod("5Mi"), node([5]), total("5Mi"), "ephemeralpodfs.limit"],
    [pod("5Mi"), node([1], 4), total("5Mi"), "ephemeralpodfs.limit"],
    [pod("5Mi", "3Mi"), node([4, 4]), total("8Mi"), "ephemeralpodfs.limit"],
    [
      pod("9Mi", "3Mi"),
      node([1, 3]),
      'Container c1 exceeded its local ephemeral storage limit "3Mi". ',
      "ephemeralcontainerfs.limit",
    ],
    [pod("9Mi", "3Mi"), node([1, 3], 0, true), undefined],
    [
      pod("9Mi", "512Ki"),
      node([1, 1], 0, true),
      'Container c1 exceeded its local ephemeral storage limit "512Ki". ',
      "ephemeralcontainerfs.limit",
    ],
    [pod("5120Ki"), node([5]), total("5Mi"), "ephemeralpodfs.limit"],
    [pod("2M", "3M"), node([4, 4]), total("5M"), "ephemeralpodfs.limit"],
  ];
  for (const [one, at, message, signal] of table) {
    const excess = await findStorageExcess(at, one);
    t.same([excess?.message, excess?.signal], [message, signal]);
  }
});

t.test("findStorageExcess() counts the volumes that Kubernetes counts as local", async (t) => {
  const sources = { configMap: {}, gitRepo: {}, downwardAPI: {}, secret: {}, projected: {} };
  const counted: string[] = [];
  for (const [name, source] of Object.entries(sources)) {
    const one = pod("50Mi");
    const { spec = { containers: [] } } = one;
    const withVolume = { ...one, spec: { ...spec, volumes: [{ name, [name]: source }] } } as Pod;
    if ((await findStorageExcess(node([0]), withVolume)) !== undefined) counted.push(name);
  }
  t.same(counted, ["configMap", "gitRepo"]);
});
