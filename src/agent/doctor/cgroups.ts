/** Control groups: version, controllers, and whether agent and runtime manage them in the same way. */
import { type Finding, finding, findingOf } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";

export interface CgroupFacts {
  /** Undefined: none are mounted. */
  readonly layout: "v1" | "v2" | "hybrid" | undefined;
  readonly controllers: readonly string[];
  /** Whether systemd is the machine's init. */
  readonly hasSystemd: boolean;
  /** As the runtime reports; undefined: unknown. */
  readonly runtimeSystemd: boolean | undefined;
}

export interface CgroupSettings {
  /** `cgroupfs` or `systemd` */
  readonly cgroupDriver: string;
  readonly failCgroupV1: boolean;
}

const required = ["cpu", "memory", "pids"];
const wanted = ["cpuset", "hugetlb"];

export function checkCgroups(facts: CgroupFacts, settings: CgroupSettings): readonly Finding[] {
  const { layout } = facts;
  if (layout === undefined)
    return [finding("cgroup-version", "error", "no control groups are mounted on /sys/fs/cgroup")];
  return [checkLayout(layout, settings), checkControllers(facts), checkDriver(facts, settings)];
}

function checkLayout(layout: "v1" | "v2" | "hybrid", { failCgroupV1 }: CgroupSettings): Finding {
  if (layout === "v2") return finding("cgroup-version", "ok", "cgroup v2");
  const name = layout === "v1" ? "cgroup v1" : "cgroup v1, with v2 for some controllers (hybrid)";
  return finding(
    "cgroup-version",
    failCgroupV1 ? "error" : "warning",
    failCgroupV1 ? `${name}, and --fail-cgroupv1 is set` : name,
  );
}

function checkControllers({ controllers }: CgroupFacts): Finding {
  const lacks = (names: readonly string[]): readonly string[] => names.filter((name) => !controllers.includes(name));
  const [missing, optional] = [lacks(required), lacks(wanted)];
  if (missing.length > 0) return finding("cgroup-controllers", "error", `missing: ${missing.join(", ")}`);
  const also = optional.length > 0 ? `; without ${optional.join(", ")}` : "";
  return finding("cgroup-controllers", "ok", `${required.join(", ")}${also}`);
}

function checkDriver({ hasSystemd, runtimeSystemd }: CgroupFacts, { cgroupDriver }: CgroupSettings): Finding {
  const id = "cgroup-driver";
  if (cgroupDriver === "systemd" && !hasSystemd) {
    return finding(id, "error", "the agent uses systemd, which does not run on this machine");
  }
  if (runtimeSystemd === undefined) {
    return finding(id, "ok", `the agent uses ${cgroupDriver}; the runtime does not report its driver`);
  }
  const runtime = runtimeSystemd ? "systemd" : "cgroupfs";
  return findingOf(
    id,
    `agent and runtime use ${cgroupDriver}`,
    runtime === cgroupDriver ? undefined : `the agent uses ${cgroupDriver}, the runtime ${runtime}`,
  );
}

export async function readCgroupFacts(host: HostReader, runtimeSystemd: boolean | undefined): Promise<CgroupFacts> {
  const mounts = ((await host.readText("/proc/self/mounts")) ?? "").split("\n").map((line) => {
    const [, path = "", type = "", options = ""] = line.split(" ");
    return { path, type, options: options.split(",") };
  });
  const isBelow = (path: string): boolean => path === "/sys/fs/cgroup" || path.startsWith("/sys/fs/cgroup/");
  const v1 = mounts.filter(({ path, type }) => type === "cgroup" && isBelow(path));
  const v2 = mounts.filter(({ path, type }) => type === "cgroup2" && isBelow(path));
  const unified = (await host.readText("/sys/fs/cgroup/cgroup.controllers")) ?? "";
  const isUnified = v2.some(({ path }) => path === "/sys/fs/cgroup");
  return {
    layout: isUnified ? "v2" : v1.length === 0 ? undefined : v2.length > 0 ? "hybrid" : "v1",
    controllers: isUnified ? unified.trim().split(/\s+/) : v1.flatMap(({ options }) => options),
    hasSystemd: (await host.stat("/run/systemd/system")) !== undefined,
    runtimeSystemd,
  };
}
