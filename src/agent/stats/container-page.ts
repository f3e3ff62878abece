/** `/metrics/cadvisor`: figures of the node, its pods and containers, read when the page is requested. */
import { statfs } from "node:fs/promises";
import { arch, release } from "node:os";
import type { Clock } from "../../std/time/clock.ts";
import type { MachineInfo } from "../node/machine/machine.ts";
import type { CgroupSettings } from "../pods/resources/cgroup-names.ts";
import type { CgroupReader, CgroupSpec, CgroupUsage } from "./cgroup-reader.ts";
import { type ContainerReading, containerFamilies, type FileSystemUsage } from "./container-families.ts";
import { readDiskUsage } from "./disk-usage.ts";
import { formatFamily, formatLabels, formatSample } from "./metric-text.ts";
import { type ProcessUsage, readInterfaces, readProcess } from "./network-usage.ts";
import { readMeminfo, readProcFile } from "./proc-file.ts";
import { type MetricsRuntime, renderRuntimeMetrics } from "./runtime-metrics.ts";
import { listNodeCgroups, listPodTargets, type PodTarget, type StatsPod } from "./stats-targets.ts";

export interface ContainerPageOptions {
  readonly pods: () => Iterable<StatsPod>;
  readonly settings: CgroupSettings;
  readonly cgroups: CgroupReader;
  readonly machine: MachineInfo;
  /** Reports what it measures of pods and containers in place of what is read here, if it can. */
  readonly metricsRuntime?: MetricsRuntime | undefined;
  /** A directory on the node's file system. */
  readonly rootDir: string;
  readonly clock: Clock;
}

interface Labels {
  readonly container: string;
  readonly id: string;
  readonly image: string;
  readonly name: string;
  readonly namespace: string;
  readonly pod: string;
}

interface LabelledReading extends ContainerReading {
  /** The text before and after the labels of one family, see `LabelledValue`. */
  readonly head: string;
  readonly middle: string;
  readonly tail: string;
}

/** Limits change rarely, and reading them is a third of the page's cost. */
const SPEC_TTL_MS = 60_000;
/** The files of so many processes are counted; a container with more has no such sample. */
const PROCESSES_MAX = 32;
/** Pods that are read without other work between them; one takes about 0.3 ms. */
const PODS_PER_SLICE = 8;

export class ContainerPage {
  readonly #options: ContainerPageOptions;
  /** By path, with the time when it was read; bounded by the cgroups of the node. */
  #specs = new Map<string, { readonly spec: CgroupSpec; readonly readAt: number }>();
  readonly #processors: CpuCounts;

  constructor(options: ContainerPageOptions) {
    this.#options = options;
    this.#processors = readCpuCounts(options.machine.cpus);
  }

  /** The page's text. Never rejects: what cannot be read is left out. */
  async render(): Promise<string> {
    const { metricsRuntime, machine } = this.#options;
    const measured = metricsRuntime && (await renderRuntimeMetrics(metricsRuntime).catch(() => ""));
    const families = measured ?? (await this.#renderFamilies());
    return `${renderVersion()}${families}${renderMachine(machine, this.#processors)}`;
  }

  async #renderFamilies(): Promise<string> {
    const readings = await this.#readAll();
    const families = containerFamilies.map((family) => {
      const samples: string[] = [];
      for (const reading of readings) {
        for (const { value, first = "", middle = "", last = "" } of family.read(reading)) {
          const labels = `${reading.head}${first}${reading.middle}${middle}${reading.tail}${last}`;
          samples.push(formatSample(family.name, labels, value, family.hasTime ? reading.usage.timeMs : undefined));
        }
      }
      return formatFamily(family, samples);
    });
    return families.join("");
  }

  async #readAll(): Promise<readonly LabelledReading[]> {
    const { pods, settings, cgroups, rootDir, clock } = this.#options;
    const specs = this.#specs;
    this.#specs = new Map();
    const readings: LabelledReading[] = [];
    const add: Add = (path, labels, { isBare = false, ...extra }) => {
      const usage = isBare ? { ...noUsage, timeMs: clock.now() } : cgroups.readUsage(path);
      if (usage === undefined) return;
      const spec = isBare ? noSpec : this.#readSpec(path, specs);
      readings.push({ ...nothing, usage, spec, ...extra, ...splitLabels({ ...noLabels, ...labels, id: path }) });
    };
    const fileSystems = await readFileSystems(rootDir);
    for (const path of listNodeCgroups(settings)) {
      add(path, {}, path === "/" ? { fileSystems, interfaces: readInterfaces("self") } : {});
    }
    for (const [index, target] of listPodTargets(pods(), settings, cgroups).entries()) {
      if (index % PODS_PER_SLICE === PODS_PER_SLICE - 1) await new Promise((resolve) => setImmediate(resolve));
      addPod(target, cgroups, add);
    }
    return readings;
  }

  #readSpec(path: string, before: ReadonlyMap<string, { readonly spec: CgroupSpec; readonly readAt: number }>) {
    const { clock, cgroups } = this.#options;
    const known = before.get(path);
    const isFresh = known !== undefined && clock.monotonic() - known.readAt < SPEC_TTL_MS;
    const entry = isFresh ? known : { spec: cgroups.readSpec(path), readAt: clock.monotonic() };
    this.#specs.set(path, entry);
    return entry.spec;
  }
}

const nothing: Omit<ContainerReading, "usage" | "spec"> = {
  startedAt: undefined,
  interfaces: [],
  processCount: undefined,
  processes: undefined,
  fileSystems: [],
};

const noLabels: Labels = { container: "", id: "", image: "", name: "", namespace: "", pod: "" };

interface Extra extends Partial<ContainerReading> {
  /** The files of the cgroup are not read. */
  readonly isBare?: boolean;
}

type Add = (path: string, labels: Partial<Labels>, extra: Extra) => void;

const noUsage: Omit<CgroupUsage, "timeMs"> = { cpu: undefined, memory: undefined, threads: undefined, devices: [] };

const noSpec: CgroupSpec = {
  cpuShares: undefined,
  cpuPeriodUs: undefined,
  cpuQuotaUs: undefined,
  memoryBytes: undefined,
  memoryReservationBytes: undefined,
  memorySwapBytes: undefined,
  threads: undefined,
};

function addPod(target: PodTarget, cgroups: CgroupReader, add: Add): void {
  const { path, namespace, name: pod, sandbox, containers } = target;
  const ofPod = { namespace, pod };
  const sandboxProcesses = sandbox === undefined ? [] : cgroups.listProcesses(sandbox.path);
  const processes = containers.map((each) => cgroups.listProcesses(each.path));
  const processCount = [sandboxProcesses, ...processes].reduce((sum, each) => sum + each.length, 0);
  add(path, ofPod, { processCount });
  if (sandbox !== undefined) {
    // The network namespace of a pod on the host's network is the node's.
    const first = sandbox.sandbox.hostNetwork ? undefined : sandboxProcesses[0];
    add(
      sandbox.path,
      { ...ofPod, name: sandbox.sandbox.id },
      {
        // Its process only waits; what it uses is part of the pod's figures.
        isBare: true,
        interfaces: first === undefined ? [] : readInterfaces(first),
        startedAt: sandbox.sandbox.createdAt / 1000,
        processCount: sandboxProcesses.length,
        processes: sumProcesses(sandboxProcesses),
      },
    );
  }
  for (const [index, { path: own, container }] of containers.entries()) {
    const found = processes[index] ?? [];
    const labels = { ...ofPod, container: container.name, image: container.image, name: container.id };
    add(own, labels, {
      startedAt: container.startedAt / 1000,
      processCount: found.length,
      processes: sumProcesses(found),
    });
  }
}

function sumProcesses(ids: readonly number[]): ProcessUsage | undefined {
  if (ids.length === 0 || ids.length > PROCESSES_MAX) return undefined;
  const found = ids.flatMap((id) => readProcess(id) ?? []);
  const first = found[0];
  if (first === undefined) return undefined;
  return {
    descriptors: found.reduce((sum, each) => sum + each.descriptors, 0),
    sockets: found.reduce<number | undefined>(
      (sum, each) => (sum === undefined || each.sockets === undefined ? undefined : sum + each.sockets),
      0,
    ),
    descriptorsMax: first.descriptorsMax,
  };
}

function splitLabels({ container, id, image, name, namespace, pod }: Labels) {
  return {
    head: `${formatLabels({ container })},`,
    middle: `${formatLabels({ id, image })},`,
    tail: formatLabels({ name, namespace, pod }),
  };
}

/** The file system that holds the directory. */
async function readFileSystems(directory: string): Promise<readonly FileSystemUsage[]> {
  try {
    const { blocks, bsize, bfree, files, ffree } = await statfs(directory);
    const used = {
      capacityBytes: blocks * bsize,
      usedBytes: (blocks - bfree) * bsize,
      inodes: files,
      inodesFree: ffree,
    };
    return [{ device: findDevice(directory), ...used, disk: await readDiskUsage(directory) }];
  } catch {
    return [];
  }
}

/** The device of the longest mount point that contains the directory. */
function findDevice(directory: string): string {
  const mounts = (readProcFile("/proc/self/mounts") ?? "").split("\n").map((line) => line.split(" "));
  let best = ["", ""];
  for (const [device = "", point = ""] of mounts) {
    const contains = point === "/" || directory === point || directory.startsWith(`${point}/`);
    if (contains && point.length >= best[1]!.length) best = [device, point];
  }
  return best[0] ?? "";
}

function renderVersion(): string {
  const family = {
    name: "cadvisor_version_info",
    type: "gauge",
    help:
      "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & " +
      "cadvisor revision.",
  } as const;
  const labels = {
    cadvisorRevision: "",
    cadvisorVersion: "",
    dockerVersion: "",
    kernelVersion: release(),
    osVersion: arch(),
  };
  return formatFamily(family, [formatSample(family.name, formatLabels(labels), 1)]);
}

/** Of non-volatile memory, which kubelet does not look for. */
const NVM_MODES = ["app_direct_mode", "memory_mode"];
const NVM_HELP = "NVM capacity value labeled by NVM mode (memory mode or app direct mode).";

function renderMachine(machine: MachineInfo, { cores, sockets }: CpuCounts): string {
  const { bootId, machineId, systemUuid, cpus, memoryBytes } = machine;
  const ids = { boot_id: bootId, machine_id: machineId };
  const labels = formatLabels({ ...ids, system_uuid: systemUuid });
  const swap = readMeminfo()("SwapTotal");
  const rows: readonly (readonly [name: string, help: string, value: number, labels?: readonly string[]])[] = [
    ["container_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", 0, [""]],
    ["machine_cpu_cores", "Number of logical CPU cores.", cpus],
    ["machine_cpu_physical_cores", "Number of physical CPU cores.", cores],
    ["machine_cpu_sockets", "Number of CPU sockets.", sockets],
    ["machine_memory_bytes", "Amount of memory installed on the machine.", memoryBytes],
    ["machine_nvm_avg_power_budget_watts", "NVM power budget.", 0],
    [
      "machine_nvm_capacity",
      NVM_HELP,
      0,
      NVM_MODES.map((mode) => formatLabels({ ...ids, mode, system_uuid: systemUuid })),
    ],
    ["machine_scrape_error", "1 if there was an error while getting machine metrics, 0 otherwise.", 0, [""]],
    ["machine_swap_bytes", "Amount of swap memory available on the machine.", swap],
  ];
  return rows
    .map(([name, help, value, own = [labels]]) =>
      formatFamily(
        { name, type: "gauge", help },
        own.map((each) => formatSample(name, each, value)),
      ),
    )
    .join("");
}

interface CpuCounts {
  readonly cores: number;
  readonly sockets: number;
}

/**
 * Reads `/proc/cpuinfo`, which can take the kernel milliseconds for each CPU; virtual machines may report neither cores
 * nor sockets.
 */
function readCpuCounts(cpus: number): CpuCounts {
  const text = readProcFile("/proc/cpuinfo") ?? "";
  const sockets = new Set<string>();
  const cores = new Set<string>();
  for (const block of text.split("\n\n")) {
    const socket = /^physical id\s*: (\d+)/m.exec(block)?.[1];
    const core = /^core id\s*: (\d+)/m.exec(block)?.[1];
    if (socket === undefined || core === undefined) continue;
    sockets.add(socket);
    cores.add(`${socket}/${core}`);
  }
  return cores.size === 0 ? { cores: cpus, sockets: 1 } : { cores: cores.size, sockets: sockets.size };
}
