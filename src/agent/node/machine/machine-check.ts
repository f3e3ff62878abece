/** Checks before the start that the machine is supported. */
import { writeFile } from "node:fs/promises";
import type { Logger } from "../../../std/log/logger.ts";
import type { AgentConfig } from "../../agent-config.ts";
import type { MachineFacts } from "../node-events.ts";
import { findKernelProblems } from "./kernel-tunables.ts";
import { type MachineInfo, readSwapDevices, usesCgroupV1 } from "./machine.ts";

/** Rejects when the agent must not run here. */
export async function checkMachine(config: AgentConfig, log: Logger): Promise<void> {
  const found = { swap: await readSwapDevices(), cgroupV1: await usesCgroupV1(), kernel: await findKernelProblems() };
  const problem = findMachineProblem(config, found);
  if (problem !== undefined) throw new Error(`Cannot start agent: ${problem}`);
  if (found.cgroupV1) log.warn("cgroup v1 support is in maintenance mode, please migrate to cgroup v2");
}

/** Facts about the machine that events report at each start. */
export async function readMachineFacts({ pods }: AgentConfig, { kernelVersion }: MachineInfo): Promise<MachineFacts> {
  const [major = 0, minor = 0] = kernelVersion.split(".").map((part) => Number.parseInt(part, 10));
  return {
    cgroupV1: await usesCgroupV1(),
    swapEnabled: (await readSwapDevices()).length > 0,
    supportsNoswap: major > 6 || (major === 6 && minor >= 4),
    resolvConf: pods.resolvConf,
    clusterDomain: pods.clusterDomain,
  };
}

interface CheckedMachine {
  readonly swap: readonly string[];
  readonly cgroupV1: boolean;
  /** Kernel parameters that differ from what pods need. */
  readonly kernel?: readonly string[];
}

/** Why the agent must not run on the machine, and how to fix it. */
export function findMachineProblem(
  { runtime }: AgentConfig,
  { swap, cgroupV1, kernel = [] }: CheckedMachine,
): string | undefined {
  if (runtime.failSwapOn && swap.length > 0) {
    return `swap is on (${swap.join(", ")}). Turn it off with "swapoff -a" or set --fail-swap-on=false`;
  }
  if (runtime.failCgroupV1 && cgroupV1) {
    return "the machine uses cgroup v1. Boot it with cgroup v2 or set --fail-cgroupv1=false";
  }
  if (runtime.singleProcessOomKill === false && cgroupV1) {
    return "singleProcessOOMKill is false, which needs cgroup v2, and the machine uses cgroup v1. Leave it out";
  }
  if (runtime.protectKernelDefaults && kernel.length > 0) {
    return `${kernel.join("; ")}. Set these values, or set --protect-kernel-defaults=false`;
  }
  return undefined;
}

/** Lowering the score needs a capability that containers often lack; the agent runs without it. */
export async function setOomScore(score: number | undefined, log: Logger): Promise<void> {
  if (score === undefined) return;
  await writeFile("/proc/self/oom_score_adj", String(score)).catch((error: Error) => {
    log.warn("Cannot set the agent's own OOM score", { score, error: error.message });
  });
}
