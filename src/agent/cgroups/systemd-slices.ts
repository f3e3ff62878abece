/**
 * Cgroups with the systemd driver: each is a slice, `kubepods-burstable.slice`, that systemd creates, so that it does
 * not remove or reconfigure cgroups that it does not manage.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type CgroupLimits, toCpuWeight } from "./cgroup-tree.ts";

/** A property of a unit: its name, its D-Bus type, its value. */
export type SliceProperty = readonly [name: string, type: "b" | "s" | "t" | "as", ...values: readonly string[]];

/** Calls a method of systemd's manager over D-Bus. Rejects with its error. */
export type CallSystemd = (method: string, signature: string, args: readonly string[]) => Promise<void>;

/** The largest uint64 means no limit. */
const UNLIMITED = String(2n ** 64n - 1n);
const TIMEOUT_MS = 10_000;

export class SystemdSlices {
  readonly #call: CallSystemd;
  readonly #isUnified: boolean;

  constructor(isUnified: boolean, call: CallSystemd = callSystemd) {
    this.#isUnified = isUnified;
    this.#call = call;
  }

  /** Creates the slice, or changes its limits. `name`: `kubepods-burstable.slice` */
  async apply(name: string, limits: CgroupLimits): Promise<void> {
    const limiting = toLimitProperties(limits, this.#isUnified);
    const start = [...unitProperties(name, this.#isUnified), ...limiting];
    try {
      await this.#call("StartTransientUnit", "ssa(sv)a(sa(sv))", [name, "replace", ...toVariants(start), "0"]);
    } catch (error) {
      if (!/already (?:exists|loaded)|UnitExists/.test(String(error))) throw error;
      // Runtime properties, valid until the next boot like the transient unit.
      await this.#call("SetUnitProperties", "sba(sv)", [name, "true", ...toVariants(limiting)]);
    }
  }

  /** Best effort: systemd removes empty slices itself. */
  async remove(name: string): Promise<void> {
    await this.#call("StopUnit", "ss", [name, "replace"]).catch(() => undefined);
  }
}

/** `kubepods-burstable.slice` → `/kubepods.slice/kubepods-burstable.slice` */
export function toSlicePath(name: string): string {
  const parts = name.replace(/\.slice$/, "").split("-");
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join("-")}.slice`).join("");
}

/** The limits as systemd's properties. */
export function toLimitProperties(limits: CgroupLimits, isUnified: boolean): readonly SliceProperty[] {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes, memoryMinBytes, pids } = limits;
  const properties: readonly (SliceProperty | false)[] = [
    memoryBytes !== undefined && [isUnified ? "MemoryMax" : "MemoryLimit", "t", String(memoryBytes ?? UNLIMITED)],
    isUnified && memoryMinBytes !== undefined && ["MemoryMin", "t", String(memoryMinBytes)],
    cpuShares !== undefined &&
      (isUnified ? ["CPUWeight", "t", String(toCpuWeight(cpuShares))] : ["CPUShares", "t", String(cpuShares)]),
    cpuPeriodUs !== undefined && ["CPUQuotaPeriodUSec", "t", String(cpuPeriodUs)],
    cpuQuotaUs !== undefined && ["CPUQuotaPerSecUSec", "t", quotaPerSecond(cpuQuotaUs, cpuPeriodUs ?? 100_000)],
    pids !== undefined && ["TasksMax", "t", String(pids)],
  ];
  return properties.filter((each) => each !== false);
}

/** systemd counts in hundredths of a CPU; rounds up, so that the limit is never too low. */
function quotaPerSecond(quotaUs: number | null, periodUs: number): string {
  return quotaUs === null ? UNLIMITED : String(Math.ceil(((quotaUs / periodUs) * 1_000_000) / 10_000) * 10_000);
}

function unitProperties(name: string, isUnified: boolean): readonly SliceProperty[] {
  const parent = toSlicePath(name).split("/").at(-2) ?? "";
  return [
    ["Description", "s", `pods of the node: ${name}`],
    ...(parent === "" ? [] : [["Wants", "as", "1", parent] as const]),
    ["DefaultDependencies", "b", "false"],
    ["MemoryAccounting", "b", "true"],
    ["CPUAccounting", "b", "true"],
    ["TasksAccounting", "b", "true"],
    [isUnified ? "IOAccounting" : "BlockIOAccounting", "b", "true"],
  ];
}

function toVariants(properties: readonly SliceProperty[]): readonly string[] {
  return [String(properties.length), ...properties.flat()];
}

async function callSystemd(method: string, signature: string, args: readonly string[]): Promise<void> {
  const manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
  const call = ["--system", "call", ...manager, method, signature, "--", ...args];
  await promisify(execFile)("busctl", call, { timeout: TIMEOUT_MS });
}
