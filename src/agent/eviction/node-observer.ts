/** Observes the eviction signals: memory from cgroups, file systems, and the number of processes. */
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../std/time/clock.ts";
import type { ImageService } from "../runtime/runtime.ts";
import type { CgroupReader } from "../stats/cgroup-reader.ts";
import { type FileSystem, readFileSystem } from "../stats/file-systems.ts";
import { readProcessLimits } from "../stats/proc-file.ts";
import type { FileSystemLayout, Observation, Observations, Signal } from "./signals.ts";

export interface NodeObserverOptions {
  readonly cgroups: Pick<CgroupReader, "readResources" | "readSpec">;
  /** Path of the cgroup of all pods. */
  readonly podsCgroup: string;
  /** The memory of the machine. */
  readonly memoryBytes: number;
  readonly rootDir: string;
  readonly images: Pick<ImageService, "imageFsInfo">;
  readonly clock: Clock;
  /** Replace the machine's. */
  readonly readFileSystem?: (path: string) => Promise<FileSystem>;
  readonly readDevice?: (path: string) => Promise<number>;
  readonly readProcesses?: typeof readProcessLimits;
}

/** How long the limit of the pods' cgroup is cached. */
const LIMIT_MS = 10_000;

interface StoragePaths {
  readonly images: string;
  readonly containers: string;
}

export class NodeObserver {
  readonly #options: NodeObserverOptions;
  #paths: StoragePaths | undefined;
  #limit: { readonly bytes: number; readonly readAt: number } | undefined;

  constructor(options: NodeObserverOptions) {
    this.#options = options;
  }

  /** Rejects when the runtime does not respond. */
  async findLayout(): Promise<FileSystemLayout> {
    const { images, rootDir, readDevice = readDeviceNumber } = this.#options;
    const { imageFilesystems = [], containerFilesystems = [] } = await images.imageFsInfo({});
    const imagePath = imageFilesystems[0]?.fsId?.mountpoint ?? "";
    const containerPath = containerFilesystems[0]?.fsId?.mountpoint ?? imagePath;
    if (imagePath === "") {
      this.#paths = { images: rootDir, containers: rootDir };
      return { hasImageFs: false, isSplit: false };
    }
    const [root, ofImages] = await Promise.all([readDevice(rootDir), readDevice(imagePath)]);
    const isSplit = containerPath !== imagePath;
    this.#paths = { images: imagePath, containers: containerPath };
    return { hasImageFs: root !== ofImages, isSplit };
  }

  async observe(): Promise<Observations> {
    const { rootDir, clock } = this.#options;
    const at = clock.now();
    const paths = this.#paths ?? { images: rootDir, containers: rootDir };
    const nodeFs = this.#readFileSystem(rootDir);
    const read = (path: string) => (path === rootDir ? nodeFs : this.#readFileSystem(path));
    const imageFs = read(paths.images);
    const containerFs = paths.containers === paths.images ? imageFs : read(paths.containers);
    const found = new Map<Signal, Observation>(this.#observeMemory(at));
    for (const [name, reading] of [
      ["nodefs", nodeFs],
      ["imagefs", imageFs],
      ["containerfs", containerFs],
    ] as const) {
      const fs = await reading;
      if (fs === undefined) continue;
      found.set(`${name}.available`, { available: fs.availableBytes, capacity: fs.capacityBytes, at });
      // File systems without fixed inodes report 0.
      if (fs.inodes > 0) found.set(`${name}.inodesFree`, { available: fs.inodesFree, capacity: fs.inodes, at });
    }
    const { running, max } = (this.#options.readProcesses ?? readProcessLimits)();
    if (max > 0 && running > 0) found.set("pid.available", { available: max - running, capacity: max, at });
    return found;
  }

  /** The figures of a file system that cannot be read are absent. */
  #readFileSystem(path: string): Promise<FileSystem | undefined> {
    const { readFileSystem: read = readWithParent } = this.#options;
    return read(path).catch(() => undefined);
  }

  *#observeMemory(at: number): Generator<readonly [Signal, Observation]> {
    const { cgroups, podsCgroup, memoryBytes } = this.#options;
    const machine = cgroups.readResources("/")?.workingSet;
    if (machine !== undefined) {
      yield ["memory.available", { available: Math.max(0, memoryBytes - machine), capacity: memoryBytes, at }];
    }
    const pods = cgroups.readResources(podsCgroup)?.workingSet;
    const limit = this.#readLimit();
    if (pods === undefined || limit === undefined) return;
    const available = Math.max(0, limit - pods);
    yield ["allocatableMemory.available", { available, capacity: available + pods, at }];
  }

  /** Undefined without a limit; the agent sets it soon after its start. */
  #readLimit(): number | undefined {
    const { cgroups, podsCgroup, memoryBytes, clock } = this.#options;
    const now = clock.monotonic();
    if (this.#limit === undefined || now - this.#limit.readAt >= LIMIT_MS) {
      const bytes = cgroups.readSpec(podsCgroup).memoryBytes;
      this.#limit = bytes === undefined ? undefined : { bytes: Math.min(bytes, memoryBytes), readAt: now };
    }
    return this.#limit?.bytes;
  }
}

/** The directory of snapshots may be inaccessible; its parent is on the same file system. */
async function readWithParent(path: string): Promise<FileSystem> {
  return await readFileSystem(path).catch(() => readFileSystem(dirname(path)));
}

async function readDeviceNumber(path: string): Promise<number> {
  const { dev } = await stat(path).catch(() => stat(dirname(path)));
  return dev;
}
