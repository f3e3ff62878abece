import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import t, { type Test } from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createCgroupReader } from "../stats/cgroup-reader.ts";
import type { FileSystem } from "../stats/file-systems.ts";
import { NodeObserver, type NodeObserverOptions } from "./node-observer.ts";

const GI = 2 ** 30;
const MEMORY = 8 * GI;

function writeTree(t: Test, files: Readonly<Record<string, string>>): string {
  const root = t.testdir();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

function fileSystem(availableBytes: number, inodes = 100): FileSystem {
  return {
    availableBytes,
    capacityBytes: 1000,
    usedBytes: 1000 - availableBytes,
    inodesFree: 7,
    inodes,
    inodesUsed: 0,
  };
}

function createObserver(hierarchy: string, isUnified: boolean, more: Partial<NodeObserverOptions> = {}) {
  const clock = new FakeClock();
  const observer = new NodeObserver({
    cgroups: createCgroupReader(hierarchy, isUnified, clock),
    podsCgroup: "/kubepods",
    memoryBytes: MEMORY,
    rootDir: "/agent",
    images: { imageFsInfo: async () => ({}) },
    clock,
    readFileSystem: async () => fileSystem(500),
    readDevice: async () => 1,
    readProcesses: () => ({ running: 100, max: 1000 }),
    ...more,
  });
  const read = async () =>
    Object.fromEntries(
      [...(await observer.observe())].map(([signal, { available, capacity }]) => [signal, [available, capacity]]),
    );
  return { clock, observer, read };
}

t.test("NodeObserver reads memory from cgroup v1, and the limit of pods once it is set", async (t) => {
  const hierarchy = writeTree(t, {
    "memory/memory.usage_in_bytes": String(3 * GI),
    "memory/memory.stat": `total_inactive_file ${GI}\n`,
    "memory/kubepods/memory.usage_in_bytes": String(2 * GI),
    "memory/kubepods/memory.stat": `total_inactive_file ${GI}\n`,
    "memory/kubepods/memory.limit_in_bytes": "9223372036854771712",
  });
  const { read, clock } = createObserver(hierarchy, false);
  t.same(await read(), {
    "memory.available": [6 * GI, 8 * GI],
    "nodefs.available": [500, 1000],
    "nodefs.inodesFree": [7, 100],
    "imagefs.available": [500, 1000],
    "imagefs.inodesFree": [7, 100],
    "containerfs.available": [500, 1000],
    "containerfs.inodesFree": [7, 100],
    "pid.available": [900, 1000],
  });
  writeFileSync(join(hierarchy, "memory/kubepods/memory.limit_in_bytes"), String(5 * GI));
  t.same((await read())["allocatableMemory.available"], [4 * GI, 5 * GI]);
  writeFileSync(join(hierarchy, "memory/kubepods/memory.limit_in_bytes"), String(4 * GI));
  await clock.advance(10_000);
  t.same((await read())["allocatableMemory.available"], [3 * GI, 4 * GI]);
});

t.test("NodeObserver reads memory from cgroup v2", async (t) => {
  const hierarchy = writeTree(t, {
    "cpu.stat": "usage_usec 1\n",
    "memory.stat": `anon 1\ninactive_file ${GI}\n`,
    "memory.current": String(3 * GI),
    "kubepods/cpu.stat": "usage_usec 1\n",
    "kubepods/memory.stat": "anon 1\ninactive_file 0\n",
    "kubepods/memory.current": String(GI),
    "kubepods/memory.max": String(5 * GI),
  });
  const found = await createObserver(hierarchy, true).read();
  t.same(found["memory.available"], [6 * GI, 8 * GI]);
  t.same(found["allocatableMemory.available"], [4 * GI, 5 * GI]);
});

t.test("NodeObserver leaves out what the machine does not have", async (t) => {
  const { read } = createObserver(t.testdir(), true, {
    readFileSystem: async (path) => {
      if (path === "/agent") return fileSystem(5, 0);
      throw new Error("it is away");
    },
    readProcesses: () => ({ running: 0, max: 0 }),
  });
  t.same(Object.keys(await read()), ["nodefs.available", "imagefs.available", "containerfs.available"]);
});

t.test("NodeObserver finds the file systems of images and containers", async (t) => {
  const place = (mountpoint: string) => [{ fsId: { mountpoint } }];
  const table: readonly (readonly [object, object, readonly number[]])[] = [
    [{}, { hasImageFs: false, isSplit: false }, [1, 1, 1]],
    [{ imageFilesystems: place("/agent/images") }, { hasImageFs: false, isSplit: false }, [1, 1, 1]],
    [{ imageFilesystems: place("/images") }, { hasImageFs: true, isSplit: false }, [1, 2, 2]],
    [
      { imageFilesystems: place("/images"), containerFilesystems: place("/agent/layers") },
      { hasImageFs: true, isSplit: true },
      [1, 2, 1],
    ],
  ];
  for (const [info, layout, expected] of table) {
    const device = async (path: string) => (path.startsWith("/images") ? 2 : 1);
    const { observer, read } = createObserver(t.testdir(), true, {
      images: { imageFsInfo: async () => info },
      readDevice: device,
      readFileSystem: async (path) => fileSystem(await device(path)),
    });
    t.same(await observer.findLayout(), layout);
    const found = await read();
    t.same(
      ["nodefs", "imagefs", "containerfs"].map((name) => found[`${name}.available`]?.[0]),
      expected,
    );
  }
});

t.test("NodeObserver reads this machine", async (t) => {
  const rootDir = t.testdir();
  const clock = new FakeClock();
  const observer = new NodeObserver({
    cgroups: createCgroupReader("/sys/fs/cgroup", false, clock),
    podsCgroup: "/kubepods",
    memoryBytes: MEMORY,
    rootDir,
    images: { imageFsInfo: async () => ({ imageFilesystems: [{ fsId: { mountpoint: join(rootDir, "absent") } }] }) },
    clock,
  });
  t.same(await observer.findLayout(), { hasImageFs: false, isSplit: false });
  const found = await observer.observe();
  for (const signal of ["nodefs.available", "imagefs.available", "pid.available"] as const) {
    const { available = 0, capacity = 0 } = found.get(signal) ?? {};
    t.ok(available > 0 && available < capacity, signal);
  }
});
