/** Options of the static CPU policy. */
import type { TopologyPolicy } from "../topology/topology-manager.ts";
import { type OptionGates, parseGoBool } from "../topology/topology-options.ts";
import type { CpuTopology } from "./cpu-topology.ts";

export interface CpuPolicyOptions {
  readonly fullCoresOnly: boolean;
  readonly distributeAcrossNuma: boolean;
  readonly alignBySocket: boolean;
  readonly distributeAcrossCores: boolean;
  readonly strictReservation: boolean;
  readonly alignByUncoreCache: boolean;
}

type Option = keyof CpuPolicyOptions;

/** Options by name, with their stage in the release. */
const OPTIONS: Readonly<Record<string, readonly [option: Option, stage: keyof OptionGates | "stable"]>> = {
  "full-pcpus-only": ["fullCoresOnly", "stable"],
  "distribute-cpus-across-numa": ["distributeAcrossNuma", "beta"],
  "align-by-socket": ["alignBySocket", "alpha"],
  "distribute-cpus-across-cores": ["distributeAcrossCores", "alpha"],
  "strict-cpu-reservation": ["strictReservation", "beta"],
  "prefer-align-cpus-by-uncorecache": ["alignByUncoreCache", "alpha"],
};

const NO_OPTIONS: CpuPolicyOptions = {
  fullCoresOnly: false,
  distributeAcrossNuma: false,
  alignBySocket: false,
  distributeAcrossCores: false,
  strictReservation: false,
  alignByUncoreCache: false,
};

/** Pairs that contradict each other. */
const EXCLUSIVE: readonly (readonly [string, string])[] = [
  ["full-pcpus-only", "distribute-cpus-across-cores"],
  ["distribute-cpus-across-numa", "distribute-cpus-across-cores"],
  ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"],
  ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"],
];

/** Throws Kubernetes' message for options that cannot be used. */
export function parseCpuPolicyOptions(values: Readonly<Record<string, string>>, gates: OptionGates): CpuPolicyOptions {
  let options = NO_OPTIONS;
  for (const [name, value] of Object.entries(values)) {
    const [option, stage] = OPTIONS[name] ?? [];
    if (option === undefined || stage === undefined) throw new Error(`unknown CPU Manager Policy option: "${name}"`);
    if (stage !== "stable" && !gates[stage]) {
      const label = stage === "alpha" ? "Alpha" : "Beta";
      throw new Error(`CPU Manager Policy ${label}-level Options not enabled, but option "${name}" provided`);
    }
    options = { ...options, [option]: parseGoBool(`bad value for option "${name}"`, value) };
  }
  for (const [a, b] of EXCLUSIVE) {
    if (isSet(options, a) && isSet(options, b)) {
      throw new Error(`static policy options ${a} and ${b} can not be used at the same time`);
    }
  }
  return options;
}

function isSet(options: CpuPolicyOptions, name: string): boolean {
  const [option] = OPTIONS[name] ?? [];
  return option !== undefined && options[option];
}

/** Throws Kubernetes' message for options that contradict the machine or the policy of the topology. */
export function validateCpuPolicyOptions(
  { alignBySocket }: CpuPolicyOptions,
  { socketCount, numaNodeCount }: CpuTopology,
  policy: TopologyPolicy,
): void {
  if (!alignBySocket) return;
  if (policy === "single-numa-node") {
    throw new Error(`Topolgy manager ${policy} policy is incompatible with CPUManager align-by-socket policy option`);
  }
  if (socketCount > numaNodeCount) {
    const why = "hardware where number of sockets are more than number of NUMA";
    throw new Error(`Align by socket is not compatible with ${why}`);
  }
}
