/** Figures of pods and containers that the runtime measures (the gate PodAndContainerStatsFromCRI). */
import type {
  ContainerStats,
  CpuUsage as CriCpuUsage,
  IoUsage as CriIoUsage,
  MemoryUsage as CriMemoryUsage,
  PodSandboxStats,
  PsiData,
  PsiStats,
  SwapUsage,
} from "../runtime/cri/stats.ts";
import { type Runtime, RuntimeError } from "../runtime/runtime.ts";
import type { CgroupReader, CgroupUsage, MemoryUsage } from "./cgroup-reader.ts";
import type { InterfaceUsage } from "./network-usage.ts";
import type { Pressure, PressureFigures } from "./pressure.ts";
import { listPodTargets, type StatsPod } from "./stats-targets.ts";

export interface RuntimeStatsOptions {
  readonly runtime: Pick<Runtime, "listPodSandboxStats">;
  readonly cgroups: CgroupReader;
  readonly pods: () => Iterable<StatsPod>;
  readonly settings: Parameters<typeof listPodTargets>[1];
}

export class RuntimeStats {
  readonly #options: RuntimeStatsOptions;
  /** By path of the cgroup, as of the last call of `refresh`. Undefined: the runtime measures nothing. */
  #usages: ReadonlyMap<string, CgroupUsage> | undefined;
  /** By the pod's UID. */
  #interfaces: ReadonlyMap<string, readonly InterfaceUsage[]> = new Map();
  /** Reads cgroups, of pods and containers what the runtime reported. */
  readonly cgroups: CgroupReader;

  constructor(options: RuntimeStatsOptions) {
    this.#options = options;
    const { cgroups } = options;
    this.cgroups = {
      ...cgroups,
      readUsage: (path) => this.#usages?.get(path) ?? cgroups.readUsage(path),
      readResources: (path) => {
        const usage = this.#usages?.get(path);
        if (usage === undefined) return cgroups.readResources(path);
        const { timeMs, cpu, memory } = usage;
        return { timeMs, cpuNs: cpu?.totalNs, workingSet: memory?.workingSet, swap: memory?.swap };
      },
    };
  }

  /** Undefined if the runtime did not report them. */
  readInterfaces(uid: string): readonly InterfaceUsage[] | undefined {
    return this.#interfaces.get(uid);
  }

  /** Reads from the runtime. The agent measures itself if the runtime does not implement the call, as kubelet does. */
  async refresh(): Promise<void> {
    const { runtime, pods, settings, cgroups } = this.#options;
    const stats = await readStats(runtime);
    if (stats === undefined) {
      this.#usages = undefined;
      this.#interfaces = new Map();
      return;
    }
    const byUid = new Map(stats.map((each) => [each.attributes?.metadata?.uid ?? "", each.linux] as const));
    const usages = new Map<string, CgroupUsage>();
    const interfaces = new Map<string, readonly InterfaceUsage[]>();
    for (const { uid, path, containers } of listPodTargets(pods(), settings, cgroups)) {
      const found = byUid.get(uid);
      if (found === undefined) continue;
      const { process, network } = found;
      usages.set(path, { ...toUsage(found), threads: toNumber(process?.processCount) });
      if (network !== undefined) interfaces.set(uid, toInterfaces(network));
      const byId = new Map((found.containers ?? []).map((each) => [each.attributes?.id ?? "", each] as const));
      for (const { path: own, container } of containers) {
        const measured = byId.get(container.id);
        if (measured !== undefined) usages.set(own, toUsage(measured));
      }
    }
    this.#usages = usages;
    this.#interfaces = interfaces;
  }
}

async function readStats(runtime: RuntimeStatsOptions["runtime"]): Promise<readonly PodSandboxStats[] | undefined> {
  try {
    return (await runtime.listPodSandboxStats({})).stats ?? [];
  } catch (error) {
    if (error instanceof RuntimeError && error.code === "UNIMPLEMENTED") return undefined;
    throw error;
  }
}

interface Measured {
  readonly cpu?: CriCpuUsage | undefined;
  readonly memory?: CriMemoryUsage | undefined;
  readonly swap?: SwapUsage | undefined;
  readonly io?: CriIoUsage | undefined;
}

function toUsage({ cpu, memory, swap, io }: Measured | ContainerStats): CgroupUsage {
  const timeNs = cpu?.timestamp ?? memory?.timestamp ?? 0n;
  const totalNs = toNumber(cpu?.usageCoreNanoSeconds);
  const pressure = { cpu: toPressure(cpu?.psi), memory: toPressure(memory?.psi), io: toPressure(io?.psi) };
  return {
    timeMs: Number(timeNs / 1_000_000n),
    cpu: totalNs === undefined ? undefined : { totalNs, userNs: 0, systemNs: 0, throttling: undefined },
    memory: memory && toMemory(memory, swap),
    threads: undefined,
    devices: [],
    ...(Object.values(pressure).some((each) => each !== undefined) ? { pressure } : {}),
  };
}

/** The runtime reports no more. */
function toMemory(memory: CriMemoryUsage, swap: SwapUsage | undefined): MemoryUsage {
  const faults = (value: CriMemoryUsage["pageFaults"]): readonly [number, number] => {
    const count = toNumber(value) ?? 0;
    return [count, count];
  };
  return {
    usage: toNumber(memory.usageBytes) ?? 0,
    workingSet: toNumber(memory.workingSetBytes) ?? 0,
    rss: toNumber(memory.rssBytes) ?? 0,
    pageFaults: faults(memory.pageFaults),
    majorPageFaults: faults(memory.majorPageFaults),
    swap: toNumber(swap?.swapUsageBytes) ?? 0,
    cache: 0,
    mappedFile: 0,
    activeFile: 0,
    inactiveFile: 0,
    kernel: 0,
    maxUsage: 0,
    limitHits: 0,
    oomKills: 0,
  };
}

function toPressure(psi: PsiStats | undefined): Pressure | undefined {
  return psi && { full: toPressureFigures(psi.Full), some: toPressureFigures(psi.Some) };
}

function toPressureFigures({ Total = 0n, Avg10 = 0, Avg60 = 0, Avg300 = 0 }: PsiData = {}): PressureFigures {
  return { total: Number(Total), avg10: Avg10, avg60: Avg60, avg300: Avg300 };
}

type Network = NonNullable<NonNullable<PodSandboxStats["linux"]>["network"]>;

function toInterfaces({ defaultInterface, interfaces = [] }: Network): readonly InterfaceUsage[] {
  const others = interfaces.filter(({ name }) => name !== defaultInterface?.name);
  return [...(defaultInterface === undefined ? [] : [defaultInterface]), ...others].map((each) => ({
    name: each.name ?? "",
    rxBytes: toNumber(each.rxBytes) ?? 0,
    rxErrors: toNumber(each.rxErrors) ?? 0,
    txBytes: toNumber(each.txBytes) ?? 0,
    txErrors: toNumber(each.txErrors) ?? 0,
    rxPackets: 0,
    rxDropped: 0,
    txPackets: 0,
    txDropped: 0,
  }));
}

function toNumber(value: { readonly value?: bigint | undefined } | undefined): number | undefined {
  return value === undefined ? undefined : Number(value.value ?? 0n);
}
