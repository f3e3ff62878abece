/** Which CPUs belong to which container, kept in `cpu_manager_state` in kubelet's format. */
import {
  CORRUPT,
  explainStateError,
  fnv32a,
  isRecord,
  parseStateJson,
  printGoMap,
  readStateFile,
  sortedEntries,
  writeStateFile,
} from "../state-file.ts";
import { CpuSet } from "./cpu-set.ts";

export type CpuAssignments = ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;

export class CpuState {
  readonly #path: string;
  readonly #policy: string;
  #defaultSet = CpuSet.empty;
  /** By pod and container. */
  readonly #assignments = new Map<string, Map<string, CpuSet>>();
  #isChanged = false;

  private constructor(path: string, policy: string) {
    this.#path = path;
    this.#policy = policy;
  }

  /** Rejects with a message for the operator when the file is of another policy, or damaged. */
  static async open(path: string, policy: string): Promise<CpuState> {
    const state = new CpuState(path, policy);
    try {
      const text = await readStateFile(path);
      if (text !== undefined) state.#restore(text);
      else await state.#write();
    } catch (error) {
      throw explainStateError(error, "CPU", path);
    }
    return state;
  }

  /** The CPUs that all containers without their own share. */
  get defaultSet(): CpuSet {
    return this.#defaultSet;
  }

  get assignments(): CpuAssignments {
    return this.#assignments;
  }

  get(uid: string, container: string): CpuSet | undefined {
    return this.#assignments.get(uid)?.get(container);
  }

  getOrDefault(uid: string, container: string): CpuSet {
    return this.get(uid, container) ?? this.#defaultSet;
  }

  setDefault(cpus: CpuSet): void {
    this.#defaultSet = cpus;
    this.#isChanged = true;
  }

  set(uid: string, container: string, cpus: CpuSet): void {
    const ofPod = this.#assignments.get(uid) ?? new Map<string, CpuSet>();
    this.#assignments.set(uid, ofPod.set(container, cpus));
    this.#isChanged = true;
  }

  delete(uid: string, container: string): void {
    const ofPod = this.#assignments.get(uid);
    ofPod?.delete(container);
    if (ofPod?.size === 0) this.#assignments.delete(uid);
    this.#isChanged = true;
  }

  /** Writes what has changed. A container starts only after its assignment is on disk. */
  async flush(): Promise<void> {
    if (!this.#isChanged) return;
    await this.#write();
    this.#isChanged = false;
  }

  #write(): Promise<void> {
    return writeStateFile(this.#path, formatCheckpoint(this.#toCheckpoint()));
  }

  #toCheckpoint(): CpuCheckpoint {
    const entries = [...this.#assignments].map(([uid, containers]) => [
      uid,
      Object.fromEntries([...containers].map(([name, cpus]) => [name, cpus.toString()])),
    ]);
    return {
      policyName: this.#policy,
      defaultCpuSet: this.#defaultSet.toString(),
      entries: Object.fromEntries(entries),
    };
  }

  #restore(text: string): void {
    const checkpoint = parseCheckpoint(text);
    if (checkpoint.policyName !== this.#policy) {
      throw new Error(
        `configured policy "${this.#policy}" differs from state checkpoint policy "${checkpoint.policyName}"`,
      );
    }
    this.#defaultSet = parseCpus(checkpoint.defaultCpuSet, (cause) => {
      return `could not parse default cpu set "${checkpoint.defaultCpuSet}": ${cause}`;
    });
    for (const [uid, containers] of Object.entries(checkpoint.entries)) {
      for (const [name, cpus] of Object.entries(containers)) {
        const parsed = parseCpus(
          cpus,
          (cause) => `could not parse cpuset "${cpus}" for container "${name}" in pod "${uid}": ${cause}`,
        );
        this.set(uid, name, parsed);
      }
    }
    this.#isChanged = false;
  }
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

/** Of the struct as kubelet prints it. */
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
