/** Rules between settings of files and flags. */
import { posix } from "node:path";
import { parseQuantity } from "../../api/meta/quantity.ts";
import type { ParsedFlags } from "../../flags/flag.ts";
import { parseDuration } from "../../flags/types/duration.ts";
import { renderFieldError } from "../../schema/validation/field-error.ts";
import { validateTracing } from "../../schema/validation/tracing.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { agentFlags } from "../flags.ts";
import { findAllowlistProblem } from "../images/pull-records/verification-policy.ts";
import { type Branch, findOrigin, formatSource, listLeaves, type Steps, toPlainValue } from "./origin.ts";

type AgentFlags = ParsedFlags<typeof agentFlags>;

interface RestartSettings {
  readonly maxContainerRestartPeriod?: string;
}

type TracingSettings = Parameters<typeof validateTracing>[0];

interface Rule {
  /** The field that the message is about. */
  readonly steps: Steps;
  readonly isBroken: (flags: AgentFlags, field: (name: string) => unknown) => boolean;
  readonly message: string | ((field: (name: string) => unknown, flags: AgentFlags) => string);
}

/** The release whose hidden metrics can be shown. */
const PREVIOUS_MINOR = "1.32";
const MARK_BITS = 32;
const ID_RANGE = 65_536;

const rules: readonly Rule[] = [
  {
    steps: ["containerLogMaxWorkers"],
    isBroken: (_flags, field) => Number(field("containerLogMaxWorkers") ?? 1) < 1,
    message: "invalid configuration: containerLogMaxWorkers must be greater than or equal to 1",
  },
  {
    steps: ["containerLogMonitorInterval"],
    isBroken: (_flags, field) => (parseDuration(String(field("containerLogMonitorInterval") ?? "10s")) ?? 0) < 3_000,
    message:
      "invalid configuration: containerLogMonitorInterval must be a positive time duration greater than or equal to 3s",
  },
  {
    steps: ["nodeLeaseDurationSeconds"],
    isBroken: (_flags, field) => Number(field("nodeLeaseDurationSeconds") ?? 40) < 1,
    message: "invalid configuration: nodeLeaseDurationSeconds must be greater than 0",
  },
  {
    steps: ["iptablesMasqueradeBit"],
    isBroken: (_flags, field) => isOutsideOfMark(field("iptablesMasqueradeBit")),
    message: (field) =>
      `invalid configuration: iptablesMasqueradeBit (--iptables-masquerade-bit) ${field("iptablesMasqueradeBit")} ` +
      "must be between 0 and 31, inclusive",
  },
  {
    steps: ["iptablesDropBit"],
    isBroken: (_flags, field) => isOutsideOfMark(field("iptablesDropBit")),
    message: (field) =>
      `invalid configuration: iptablesDropBit (--iptables-drop-bit) ${field("iptablesDropBit")} must be between ` +
      "0 and 31, inclusive",
  },
  {
    steps: ["shutdownGracePeriodCriticalPods"],
    isBroken: (_flags, field) =>
      readMs(field("shutdownGracePeriodCriticalPods")) > readMs(field("shutdownGracePeriod")),
    message: (field) =>
      `invalid configuration: shutdownGracePeriodCriticalPods ${field("shutdownGracePeriodCriticalPods")} must be <= ` +
      `shutdownGracePeriod ${field("shutdownGracePeriod") ?? "0s"}`,
  },
  {
    steps: ["shutdownGracePeriod"],
    isBroken: (_flags, field) => isBelowSecond(field("shutdownGracePeriod")),
    message: (field) =>
      `invalid configuration: shutdownGracePeriod ${field("shutdownGracePeriod")} must be either zero or otherwise ` +
      ">= 1 sec",
  },
  {
    steps: ["shutdownGracePeriodCriticalPods"],
    isBroken: (_flags, field) => isBelowSecond(field("shutdownGracePeriodCriticalPods")),
    message: (field) =>
      `invalid configuration: shutdownGracePeriodCriticalPods ${field("shutdownGracePeriodCriticalPods")} must be ` +
      "either zero or otherwise >= 1 sec",
  },
  {
    steps: ["shutdownGracePeriodByPodPriority"],
    isBroken: (_flags, field) =>
      isFilled(field("shutdownGracePeriodByPodPriority")) &&
      readMs(field("shutdownGracePeriod")) + readMs(field("shutdownGracePeriodCriticalPods")) > 0,
    message:
      "invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the " +
      "same time",
  },
  {
    steps: ["showHiddenMetricsForVersion"],
    isBroken: (_flags, field) => !["", PREVIOUS_MINOR].includes(String(field("showHiddenMetricsForVersion") ?? "")),
    message:
      `showHiddenMetricsForVersion must be omitted or have the value '${PREVIOUS_MINOR}'. Only the previous minor ` +
      "version is allowed",
  },
  {
    steps: ["logging", "vmodule"],
    isBroken: (flags) => flags.vmodule.length > 0 && flags["logging-format"] !== "text",
    message: "logging.vmodule (--vmodule) is only supported for the text log format",
  },
  {
    steps: ["crashLoopBackOff"],
    isBroken: (_flags, field) => {
      const { maxContainerRestartPeriod: period = "1s" } = (field("crashLoopBackOff") ?? {}) as RestartSettings;
      const ms = parseDuration(period) ?? 0;
      return ms < 1_000 || ms > 300_000;
    },
    message: (field) => {
      const { maxContainerRestartPeriod: period } = (field("crashLoopBackOff") ?? {}) as RestartSettings;
      const seconds = readMs(period) / 1000;
      return (
        `invalid configuration: CrashLoopBackOff.MaxContainerRestartPeriod (got: ${seconds} seconds) must be set ` +
        "between 1s and 300s"
      );
    },
  },
  {
    steps: ["userNamespaces"],
    isBroken: (_flags, field) => {
      const ids = Number((field("userNamespaces") as { idsPerPod?: unknown } | undefined)?.idsPerPod ?? ID_RANGE);
      return ids < ID_RANGE || ids % ID_RANGE !== 0 || ids > 2 ** 32 - ID_RANGE;
    },
    message: `userNamespaces.idsPerPod must be a multiple of ${ID_RANGE}, and less than 2^32`,
  },
  {
    steps: ["maxParallelImagePulls"],
    isBroken: (_flags, field) => Number(field("maxParallelImagePulls") ?? 1) < 1,
    message: (field) =>
      `invalid configuration: maxParallelImagePulls ${field("maxParallelImagePulls")} must be a positive number`,
  },
  {
    steps: ["maxParallelImagePulls"],
    isBroken: (flags, field) => flags["serialize-image-pulls"] && Number(field("maxParallelImagePulls") ?? 1) > 1,
    message:
      "invalid configuration: maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls " +
      "(--serialize-image-pulls) is set to false",
  },
  {
    steps: ["preloadedImagesVerificationAllowlist"],
    isBroken: (_flags, field) => !usesAllowlist(field) && readAllowlist(field).length > 0,
    message:
      "invalid configuration: can't set `preloadedImagesVerificationAllowlist` if " +
      '`imagePullCredentialsVerificationPolicy` is not "NeverVerifyAllowlistedImages"',
  },
  {
    steps: ["preloadedImagesVerificationAllowlist"],
    isBroken: (_flags, field) => usesAllowlist(field) && findAllowlistProblem(readAllowlist(field)) !== undefined,
    message: (field) =>
      "invalid configuration: invalid image pattern in `preloadedImagesVerificationAllowlist`: " +
      `${findAllowlistProblem(readAllowlist(field))}`,
  },
  {
    steps: ["imageGCLowThresholdPercent"],
    isBroken: (flags) => flags["image-gc-low-threshold"] > flags["image-gc-high-threshold"],
    message: "imageGCLowThresholdPercent must not be above imageGCHighThresholdPercent",
  },
  {
    steps: ["imageMaximumGCAge"],
    isBroken: (flags, field) => {
      const maxMs = readMs(field("imageMaximumGCAge"));
      return maxMs > 0 && maxMs <= flags["minimum-image-ttl-duration"];
    },
    message: (field) =>
      `invalid configuration: imageMaximumGCAge ${field("imageMaximumGCAge")} must be greater than imageMinimumGCAge ` +
      `${field("imageMinimumGCAge") ?? "2m0s"}`,
  },
  {
    steps: ["registerWithTaints"],
    isBroken: (_flags, field) => hasTimeAdded(field("registerWithTaints")),
    message: "invalid configuration: taint.TimeAdded is not nil",
  },
  {
    steps: ["enableSystemLogQuery"],
    isBroken: (_flags, field) => field("enableSystemLogQuery") === true && field("enableSystemLogHandler") === false,
    message: "invalid configuration: enableSystemLogHandler is required for enableSystemLogQuery",
  },
  {
    steps: ["podLogsDir"],
    isBroken: (_flags, field) => findPodLogsProblem(field("podLogsDir")) !== undefined,
    message: (field) => `invalid configuration: ${findPodLogsProblem(field("podLogsDir"))}`,
  },
  {
    steps: ["reservedMemory"],
    isBroken: (flags) => findReservedMemoryProblem(flags["reserved-memory"]) !== undefined,
    message: (_field, flags) => `invalid configuration: ${findReservedMemoryProblem(flags["reserved-memory"])}`,
  },
  {
    steps: ["enforceNodeAllocatable"],
    isBroken: (flags) => findDuplicate(flags["enforce-node-allocatable"]) !== undefined,
    message: (_field, flags) =>
      `invalid configuration: duplicated enforcements "${findDuplicate(flags["enforce-node-allocatable"])}" in ` +
      "enforceNodeAllocatable (--enforce-node-allocatable)",
  },
  {
    steps: ["enforceNodeAllocatable"],
    isBroken: ({ "enforce-node-allocatable": enforced }) => enforced.includes("none") && enforced.length > 1,
    message:
      "invalid configuration: enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional " +
      'enforcements when "none" is specified',
  },
  {
    steps: ["enforceNodeAllocatable"],
    isBroken: (flags) => requiresCgroup(flags, "system-reserved"),
    message:
      "invalid configuration: systemReservedCgroup (--system-reserved-cgroup) must be specified when " +
      '"system-reserved" contained in enforceNodeAllocatable (--enforce-node-allocatable)',
  },
  {
    steps: ["enforceNodeAllocatable"],
    isBroken: (flags) => requiresCgroup(flags, "svc-reserved"),
    message:
      "invalid configuration: svcReservedCgroup (--svc-reserved-cgroup) must be specified when " +
      '"svc-reserved" contained in enforceNodeAllocatable (--enforce-node-allocatable)',
  },
  {
    steps: ["memoryThrottlingFactor"],
    isBroken: (_flags, field) => {
      const factor = Number(field("memoryThrottlingFactor") ?? 0.9);
      return factor <= 0 || factor > 1;
    },
    message: (field) =>
      `invalid configuration: memoryThrottlingFactor ${field("memoryThrottlingFactor")} must be greater than 0 and ` +
      "less than or equal to 1.0",
  },
  {
    steps: ["memorySwap"],
    isBroken: (_flags, field) => !["", "LimitedSwap", "NoSwap"].includes(readSwapBehavior(field("memorySwap"))),
    message: (field) =>
      `invalid configuration: memorySwap.swapBehavior "${readSwapBehavior(field("memorySwap"))}" must be one of: "", ` +
      '"LimitedSwap" or "NoSwap"',
  },
  {
    steps: ["cgroupsPerQOS"],
    isBroken: (flags) => !flags["cgroups-per-qos"] && flags["enforce-node-allocatable"].some((name) => name !== "none"),
    message: (_field, flags) => {
      const name = flags["enforce-node-allocatable"].find((each) => each !== "none");
      return (
        `invalid configuration: cgroupsPerQOS (--cgroups-per-qos) must be set to true when "${name}" contained in ` +
        "enforceNodeAllocatable (--enforce-node-allocatable)"
      );
    },
  },
  {
    steps: ["systemCgroups"],
    isBroken: (flags) => flags["system-cgroups"] !== "" && flags["cgroup-root"] === "",
    message:
      "invalid configuration: systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not " +
      "specified",
  },
  {
    steps: ["runOnce"],
    isBroken: (flags) => flags.runonce && flags["enable-server"],
    message: "runOnce and enableServer cannot both be true: set enableServer to false",
  },
  {
    steps: ["evictionSoft"],
    isBroken: (flags) =>
      Object.keys(flags["eviction-soft"]).some((signal) => !Object.hasOwn(flags["eviction-soft-grace-period"], signal)),
    message: "evictionSoft needs a grace period in evictionSoftGracePeriod for each of its signals",
  },
  {
    steps: ["tlsCertFile"],
    isBroken: (flags) => (flags["tls-cert-file"] === "") !== (flags["tls-private-key-file"] === ""),
    message: "tlsCertFile and tlsPrivateKeyFile must be set together: set both or neither",
  },
  {
    steps: ["reservedSystemCPUs"],
    isBroken: (flags) =>
      flags["reserved-cpus"] !== "" && (flags["svc-reserved-cgroup"] !== "" || flags["system-reserved-cgroup"] !== ""),
    message:
      "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup " +
      "(--system-reserved-cgroup) or svcReservedCgroup (--svc-reserved-cgroup)",
  },
];

function validateTracingField(value: unknown, isAllowed: boolean): readonly string[] {
  if (!isPlainObject(value)) return [];
  if (!isAllowed) {
    return ["invalid configuration: tracing should not be configured if SvcletTracing feature flag is disabled."];
  }
  const { endpoint, samplingRatePerMillion } = value as TracingSettings;
  return validateTracing({ endpoint, samplingRatePerMillion }, "tracing").map(
    (error) => `${error.field}: ${renderFieldError(error)}`,
  );
}

/** One line for each broken rule, with the source of the field. `tracing`: the gate of that field. */
export function validateRules(flags: AgentFlags, origins: Branch, tracing = true): string[] {
  const field = (name: string): unknown => {
    const node = findOrigin(origins, [name]);
    return node === undefined ? undefined : toPlainValue(node);
  };
  const broken = rules
    .filter(({ isBroken }) => isBroken(flags, field))
    .map(
      ({ steps, message }) =>
        `${origin(origins, steps)}${typeof message === "string" ? message : message(field, flags)}`,
    );
  const ofTracing = validateTracingField(field("tracing"), tracing);
  return [...broken, ...ofTracing.map((message) => `${origin(origins, ["tracing"])}${message}`)];
}

function readMs(duration: unknown): number {
  return parseDuration(String(duration ?? "0s")) ?? 0;
}

function isBelowSecond(duration: unknown): boolean {
  const ms = readMs(duration);
  return ms > 0 && ms < 1_000;
}

function isFilled(list: unknown): boolean {
  return Array.isArray(list) && list.length > 0;
}

function isOutsideOfMark(bit: unknown): boolean {
  return bit !== undefined && (Number(bit) < 0 || Number(bit) >= MARK_BITS);
}

function hasTimeAdded(taints: unknown): boolean {
  return Array.isArray(taints) && taints.some((each) => isPlainObject(each) && each.timeAdded !== undefined);
}

function findPodLogsProblem(directory: unknown): string | undefined {
  const path = String(directory ?? "/");
  if (!path.startsWith("/")) return `pod logs path "${path}" must be absolute path`;
  if (posix.normalize(path) !== path) return `pod logs path "${path}" must be normalized`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is allowed.
  return /^[\x00-\x7f]*$/.test(path) ? undefined : `pod logs path "${path}" must contain ASCII characters only`;
}

function findReservedMemoryProblem(reservations: AgentFlags["reserved-memory"]): string | undefined {
  const seen = new Set<string>();
  for (const { numaNode, limits } of reservations) {
    for (const [resource, quantity] of Object.entries(limits)) {
      const what = `NUMA node ${numaNode} and resource "${resource}"`;
      if (parseQuantity(quantity)?.nanos === 0n) return `reserved memory may not be zero for ${what}`;
      if (seen.has(what)) return `the reserved memory has a duplicate value for ${what}`;
      seen.add(what);
    }
  }
  return undefined;
}

function findDuplicate(names: readonly string[]): string | undefined {
  return names.find((name, index) => names.indexOf(name) < index);
}

function readSwapBehavior(memorySwap: unknown): string {
  const { swapBehavior = "" } = isPlainObject(memorySwap) ? memorySwap : {};
  return String(swapBehavior);
}

function requiresCgroup(flags: AgentFlags, name: "system-reserved" | "svc-reserved"): boolean {
  return flags["enforce-node-allocatable"].includes(name) && flags[`${name}-cgroup`] === "";
}

function origin(origins: Branch, steps: Steps): string {
  const node = findOrigin(origins, steps);
  for (const [, { source }] of node === undefined ? [] : listLeaves(node)) {
    if (source.kind !== "default") return `${formatSource(source)}: `;
  }
  return "";
}

function usesAllowlist(field: (name: string) => unknown): boolean {
  return field("imagePullCredentialsVerificationPolicy") === "NeverVerifyAllowlistedImages";
}

function readAllowlist(field: (name: string) => unknown): readonly string[] {
  const list = field("preloadedImagesVerificationAllowlist");
  return Array.isArray(list) ? list.map(String) : [];
}
