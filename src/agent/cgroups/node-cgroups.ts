/**
 * Enforces node allocatable: limits of the cgroups of all pods, of system daemons and of the agent. Also moves the
 * agent and system processes into their cgroups.
 */
import { readFile, readlink } from "node:fs/promises";
import type { ResourceList } from "../../api/core/resources/schema.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type CgroupSettings, cgroupName } from "../pods/resources/cgroup-names.ts";
import { milliCpuToShares } from "../pods/resources/container-resources.ts";
import { makeHugePageLimits } from "../pods/resources/pod-cgroup-limits.ts";
import { applyCgroupLimits } from "../pods/resources/pod-cgroups.ts";
import { parseMillis, parseUnits } from "../pods/resources/quantities.ts";
import type { CgroupLimits, CgroupTree } from "./cgroup-tree.ts";
import { type SystemdSlices, toSlicePath } from "./systemd-slices.ts";

export type Enforcement = "none" | "pods" | "system-reserved" | "svc-reserved";

export interface NodeCgroupSettings extends CgroupSettings {
  /** Which limits are enforced (`--enforce-node-allocatable`). */
  readonly enforce: readonly Enforcement[];
  readonly systemReserved: ResourceList;
  readonly svcReserved: ResourceList;
  /** An existing cgroup; empty when it is not enforced. */
  readonly systemReservedCgroup: string;
  readonly svcReservedCgroup: string;
  /** The agent's cgroup; empty: it is not moved. */
  readonly agentCgroup: string;
  /** The cgroup for processes of the root cgroup; empty: they are not moved. */
  readonly systemCgroup: string;
}

export interface NodeCgroupsOptions {
  /** Whether the kernel is not to reclaim memory that is reserved; requires cgroup v2. */
  readonly protectsMemory?: boolean;
  readonly settings: NodeCgroupSettings;
  /** The node's capacity. */
  readonly capacity: ResourceList;
  readonly tree: CgroupTree;
  readonly slices: Pick<SystemdSlices, "apply"> | undefined;
  /** Records an event about the node. */
  readonly recordEvent: (type: "Normal" | "Warning", reason: string, message: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const ENFORCED = "NodeAllocatableEnforced";
const FAILED = "FailedNodeAllocatableEnforcement";
const RETRY_MS = 60_000;
/** Interval at which processes are moved again. */
const MOVE_INTERVAL_MS = 300_000;
/** New processes may start while others are moved. */
const MOVE_ATTEMPTS = 10;

export class NodeCgroups {
  readonly #options: NodeCgroupsOptions;

  constructor(options: NodeCgroupsOptions) {
    this.#options = options;
  }

  /** Rejects when reservations cannot be enforced; the agent must not start then. */
  async enforceReservations(): Promise<void> {
    const { enforce, systemReserved, systemReservedCgroup, svcReserved, svcReservedCgroup } = this.#options.settings;
    if (enforce.includes("system-reserved")) await this.#reserve("system", systemReservedCgroup, systemReserved);
    if (enforce.includes("svc-reserved")) await this.#reserve("svc", svcReservedCgroup, svcReserved);
  }

  /** Moves the agent, and processes of the root cgroup, into their cgroups. Rejects when the kernel refuses. */
  async moveProcesses(): Promise<void> {
    const { settings, tree } = this.#options;
    const { agentCgroup, systemCgroup } = settings;
    if (systemCgroup === "/") throw new Error('system container cannot be root ("/")');
    if (agentCgroup !== "") {
      await tree.create(agentCgroup);
      await tree.addProcess(agentCgroup, process.pid);
    }
    if (systemCgroup !== "") await this.#moveRootProcesses(systemCgroup);
  }

  /** Sets the limits of all pods once the kernel accepts them, and moves processes, until the signal aborts. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    const untilStopped = async (loop: Promise<void>): Promise<void> => {
      await loop.catch((error) => {
        if (!signal.aborted) throw error;
      });
    };
    // Waits for both loops, so that a write in progress completes before the agent has stopped.
    await Promise.all([this.#runLimitLoop(), this.#runProcessLoop()].map(untilStopped));
  }

  async #runLimitLoop(): Promise<void> {
    const { settings, tree, slices, recordEvent: event, clock, signal } = this.#options;
    if (!settings.cgroupsPerQos) return;
    const parent = cgroupName("", "Guaranteed", settings);
    while (!signal.aborted) {
      try {
        await applyCgroupLimits(tree, slices, parent, this.#allPodsLimits(await readProcessesMax()));
        event("Normal", ENFORCED, "Updated Node Allocatable limit across pods");
        return;
      } catch (error) {
        // Running pods may use more than the new limit.
        event("Warning", FAILED, `Failed to update Node Allocatable Limits ["kubepods"]: ${errorMessage(error)}`);
        await clock.sleep(RETRY_MS, signal);
      }
    }
  }

  /** The capacity minus enforced reservations; without eviction thresholds, as in kubelet. */
  #allPodsLimits(processes: number): CgroupLimits {
    const { settings, capacity } = this.#options;
    const reserved = settings.enforce.includes("pods") ? [settings.systemReserved, settings.svcReserved] : [];
    const left = (name: string, parse: (text: string | undefined) => number, whole = parse(capacity[name])) =>
      Math.max(
        0,
        reserved.reduce((rest, each) => rest - parse(each[name]), whole),
      );
    const sizes = Object.keys(capacity).flatMap((name) => /^hugepages-(.*)$/.exec(name)?.[1] ?? []);
    return {
      cpuShares: milliCpuToShares(left("cpu", parseMillis)),
      memoryBytes: left("memory", parseUnits),
      ...(processes > 0 ? { pids: left("pid", parseUnits, processes) } : {}),
      ...makeHugePageLimits(sizes, (name) => left(name, parseUnits)),
    };
  }

  async #reserve(name: "system" | "svc", cgroup: string, reserved: ResourceList): Promise<void> {
    const { tree, settings, slices, recordEvent: event } = this.#options;
    const title = name === "system" ? "System" : "Svc";
    try {
      const isSystemd = settings.cgroupDriver === "systemd";
      const slice = `${cgroup
        .split("/")
        .at(-1)
        ?.replace(/\.slice$/, "")}.slice`;
      const path = isSystemd ? toSlicePath(slice) : cgroup;
      const missing = await tree.findMissing(path);
      if (missing.length > 0)
        throw new Error(`cgroup ${JSON.stringify(cgroup)} has some missing paths: ${missing.join(", ")}`);
      const limits = toReservedLimits(reserved, this.#options.protectsMemory === true);
      if (isSystemd) await slices?.apply(slice, limits);
      await tree.setLimits(path, limits);
      event("Normal", ENFORCED, `Updated limits on ${name} reserved cgroup ${cgroup}`);
    } catch (error) {
      const text = `Failed to enforce ${title} Reserved Cgroup Limits on ${JSON.stringify(cgroup)}: ${errorMessage(error)}`;
      event("Warning", FAILED, text);
      throw new Error(text, { cause: error });
    }
  }

  async #runProcessLoop(): Promise<void> {
    const { settings, clock, log, signal } = this.#options;
    if (settings.agentCgroup === "" && settings.systemCgroup === "") return;
    while (!signal.aborted) {
      await clock.sleep(MOVE_INTERVAL_MS, signal);
      await this.moveProcesses().catch((error) => log.error("Cannot move processes to their cgroups", error));
    }
  }

  /** Moves all processes of the root cgroup except PID 1 and kernel threads. */
  async #moveRootProcesses(cgroup: string): Promise<void> {
    const { tree } = this.#options;
    await tree.create(cgroup);
    for (let sweep = 0; sweep < MOVE_ATTEMPTS; sweep++) {
      const found = await Promise.all(
        (await tree.readProcesses("/")).map(async (pid) => ((await isUserProcess(pid)) ? [pid] : [])),
      );
      const pids = found.flat();
      if (pids.length === 0) return;
      for (const pid of pids) await tree.addProcess(cgroup, pid).catch(ignoreExited);
    }
    throw new Error(`some processes could not be moved to cgroup ${JSON.stringify(cgroup)}`);
  }
}

function toReservedLimits(reserved: ResourceList, protectsMemory: boolean): CgroupLimits {
  const { cpu, memory, pid } = reserved;
  return {
    ...(cpu === undefined ? {} : { cpuShares: milliCpuToShares(parseMillis(cpu)) }),
    ...(memory === undefined ? {} : { memoryBytes: parseUnits(memory) }),
    ...(memory === undefined || !protectsMemory ? {} : { memoryMinBytes: parseUnits(memory) }),
    ...(pid === undefined ? {} : { pids: parseUnits(pid) }),
  };
}

/** The kernel's limit of processes; 0 when it cannot be read. */
async function readProcessesMax(): Promise<number> {
  const files = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
  const found = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  return Math.min(...found.map((text) => Number(text) || 0));
}

/** Kernel threads have no executable. */
async function isUserProcess(pid: number): Promise<boolean> {
  if (pid === 1) return false;
  return await readlink(`/proc/${pid}/exe`).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
}

function ignoreExited(error: NodeJS.ErrnoException): void {
  if (error.code !== "ESRCH") throw error;
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
