/**
 * Evictions that have begun, in a file: an agent that ends between the decision and the pod's last status continues
 * them after its restart, where it would otherwise start the stopped containers again.
 */
import { join } from "node:path";
import type { Pod } from "../../api/core/pod/schema.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { Logger } from "../../std/log/logger.ts";
import { isTerminal, podUid } from "../pods/pod-fields.ts";
import type { Termination } from "../pods/worker/pod-termination.ts";
import { readStateFile, writeStateFile } from "../resource-managers/state-file.ts";

/** What pods need of evictions. */
export interface EvictionLinks {
  /** Types of the pressure conditions that are true. */
  readonly pressures: () => readonly string[];
  readonly records: Pick<EvictionRecords, "findTermination">;
}

export interface EvictionRecord {
  readonly uid: string;
  readonly message: string;
  /** Seconds; undefined: the pod's own. */
  readonly graceSeconds: number | undefined;
  /** Of the event; absent in files of earlier releases. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** False: the pod itself is the cause, and gets no condition `DisruptionTarget`; true when absent. */
  readonly isDisruption?: boolean | undefined;
}

export class EvictionRecords {
  readonly #path: string;
  readonly #log: Logger;
  /** By uid; bounded by the pods of the node. */
  readonly #records = new Map<string, EvictionRecord>();
  /** Uids of evictions that an earlier process has begun, and that this one has not continued yet. */
  readonly #interrupted = new Set<string>();
  #lastWrite: Promise<void> = Promise.resolve();

  private constructor(path: string, log: Logger) {
    this.#path = path;
    this.#log = log;
  }

  /** A file that cannot be read is ignored. */
  static async open(rootDir: string, log: Logger): Promise<EvictionRecords> {
    const records = new EvictionRecords(join(rootDir, "evictions.json"), log);
    try {
      const text = await readStateFile(records.#path);
      const found: unknown = text === undefined ? [] : JSON.parse(text);
      for (const each of Array.isArray(found) ? (found as readonly unknown[]) : []) {
        if (!isRecord(each)) continue;
        records.#records.set(each.uid, each);
        records.#interrupted.add(each.uid);
      }
    } catch (error) {
      log.warn("Cannot read the evictions that have begun", { path: records.#path, error: String(error) });
    }
    return records;
  }

  get all(): readonly EvictionRecord[] {
    return [...this.#records.values()];
  }

  isInterrupted(uid: string): boolean {
    return this.#interrupted.has(uid);
  }

  /** The record of an eviction that an earlier process has begun; only at the first call for a pod. */
  takeInterrupted(uid: string): EvictionRecord | undefined {
    return this.#interrupted.delete(uid) ? this.#records.get(uid) : undefined;
  }

  /** How the pod ends; undefined for one whose eviction has not begun, or is reported. */
  findTermination(pod: Pod): Termination | undefined {
    const record = this.#records.get(podUid(pod));
    return record === undefined || isTerminal(pod) ? undefined : toTermination(record);
  }

  async add(record: EvictionRecord): Promise<void> {
    this.#records.set(record.uid, record);
    await this.#write();
  }

  /** Drops the records of pods that have ended: their last status is reported, and their volumes are removed. */
  async retain(isUnfinished: (record: EvictionRecord) => boolean): Promise<void> {
    const finished = this.all.filter((each) => !isUnfinished(each));
    if (finished.length === 0) return;
    for (const { uid } of finished) {
      this.#records.delete(uid);
      this.#interrupted.delete(uid);
    }
    await this.#write();
  }

  /** Writes one after the other. The eviction itself does not depend on the file. */
  #write(): Promise<void> {
    this.#lastWrite = this.#lastWrite.then(() => this.#writeOnce());
    return this.#lastWrite;
  }

  async #writeOnce(): Promise<void> {
    try {
      await writeStateFile(this.#path, `${JSON.stringify(this.all)}\n`);
    } catch (error) {
      this.#log.warn("Cannot record the evictions that have begun", { path: this.#path, error: String(error) });
    }
  }
}

export function toTermination({ message, graceSeconds, isDisruption }: Omit<EvictionRecord, "uid">): Termination {
  const failure = { reason: "Evicted", message };
  return { graceSeconds, failure, ...(isDisruption === false ? {} : { disruption: message }) };
}

function isRecord(value: unknown): value is EvictionRecord {
  if (!isPlainObject(value)) return false;
  const { uid, message, graceSeconds, annotations, isDisruption } = value;
  const hasGrace = graceSeconds === undefined || typeof graceSeconds === "number";
  const hasCause = isDisruption === undefined || typeof isDisruption === "boolean";
  const hasAnnotations =
    annotations === undefined ||
    (isPlainObject(annotations) && Object.values(annotations).every((each) => typeof each === "string"));
  return typeof uid === "string" && typeof message === "string" && hasGrace && hasCause && hasAnnotations;
}
