/** Which CPUs belong to which container, kept in `cpu_manager_state` in kubelet's format. */
import { ManagerState, type StateContent } from "../manager-state.ts";
import { CORRUPT, fnv32a, isRecord, parseStateJson, printGoMap, sortedEntries } from "../state-file.ts";
import { CpuSet } from "./cpu-set.ts";

/** What is shared are the CPUs of all containers without their own. */
export type CpuState = ManagerState<CpuSet, CpuSet>;

/** Rejects with a message for the operator when the file is of another policy, or damaged. */
export function openCpuState(path: string, policy: string): Promise<CpuState> {
  const initial = CpuSet.empty;
  return ManagerState.open(path, policy, {
    manager: "CPU",
    prefix: "",
    initial,
    format: formatState,
    parse: parseState,
  });
}

function formatState({ policy, shared, assignments }: StateContent<CpuSet, CpuSet>): string {
  const entries = [...assignments].map(([uid, containers]) => [
    uid,
    Object.fromEntries([...containers].map(([name, cpus]) => [name, cpus.toString()])),
  ]);
  return formatCheckpoint({
    policyName: policy,
    defaultCpuSet: shared.toString(),
    entries: Object.fromEntries(entries),
  });
}

function parseState(text: string): StateContent<CpuSet, CpuSet> {
  const { policyName, defaultCpuSet, entries } = parseCheckpoint(text);
  const shared = parseCpus(defaultCpuSet, (cause) => `could not parse default cpu set "${defaultCpuSet}": ${cause}`);
  const assignments = Object.entries(entries).map(([uid, containers]) => {
    const ofPod = Object.entries(containers).map(([name, cpus]) => {
      const where = `cpuset "${cpus}" for container "${name}" in pod "${uid}"`;
      return [name, parseCpus(cpus, (cause) => `could not parse ${where}: ${cause}`)] as const;
    });
    return [uid, new Map(ofPod)] as const;
  });
  return { policy: policyName, shared, assignments: new Map(assignments) };
}

interface CpuCheckpoint {
  readonly policyName: string;
  readonly defaultCpuSet: string;
  readonly entries: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

function parseCpus(text: string, describe: (cause: string) => string): CpuSet {
  try {
    return CpuSet.parse(text);
  } catch (error) {
    throw new Error(describe(error instanceof Error ? error.message : String(error)), { cause: error });
  }
}

function formatCheckpoint(checkpoint: CpuCheckpoint): string {
  const { policyName, defaultCpuSet } = checkpoint;
  const entries = sortedEntries(checkpoint.entries).map(
    ([uid, containers]) => [uid, Object.fromEntries(sortedEntries(containers))] as const,
  );
  const shown = entries.length === 0 ? {} : { entries: Object.fromEntries(entries) };
  return JSON.stringify({ policyName, defaultCpuSet, ...shown, checksum: computeChecksum(checkpoint) });
}

/** The checksum of the struct as kubelet prints it. */
function computeChecksum({ policyName, defaultCpuSet, entries }: CpuCheckpoint): number {
  const assignments = printGoMap(entries, (containers) => printGoMap(containers, String));
  const fields = [
    `PolicyName:(string)${policyName}`,
    `DefaultCPUSet:(string)${defaultCpuSet}`,
    `Entries:(map[string]map[string]string)${assignments}`,
    "Checksum:(checksum.Checksum)0",
  ];
  return fnv32a(`(*state.CPUManagerCheckpoint){${fields.join(" ")}}`);
}

function parseCheckpoint(text: string): CpuCheckpoint {
  const json = parseStateJson(text);
  // Go's decoder ignores the case of names.
  const field = (name: string): unknown =>
    Object.entries(json).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
  const { entries = {}, checksum = 0 } = json;
  const checkpoint = {
    policyName: String(field("policyName") ?? ""),
    defaultCpuSet: String(field("defaultCpuSet") ?? ""),
    entries: toEntries(entries),
  };
  // Files of releases before checksums have none.
  if (checksum !== 0 && checksum !== computeChecksum(checkpoint)) throw new Error(CORRUPT);
  return checkpoint;
}

function toEntries(json: unknown): CpuCheckpoint["entries"] {
  const entries: Record<string, Readonly<Record<string, string>>> = {};
  for (const [uid, containers] of isRecord(json) ? Object.entries(json) : []) {
    if (!isRecord(containers)) {
      throw new Error("the entries are of the format before Kubernetes 1.18, by container ID");
    }
    entries[uid] = Object.fromEntries(Object.entries(containers).map(([name, cpus]) => [name, String(cpus)]));
  }
  return entries;
}
