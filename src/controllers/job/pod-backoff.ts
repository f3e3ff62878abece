/** The delay before a job's failed pods are replaced: 10 s after the first failure, then doubling. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { finishTimeOf } from "./pod-failures.ts";

const INITIAL_MS = 10_000;
const MAX_MS = 10 * 60_000;

/** Failures of a job's pods since the last success. */
export interface BackoffRecord {
  readonly failures: number;
  /** Milliseconds since 1970. */
  readonly lastFailureAt: number;
}

export const NO_FAILURES: BackoffRecord = { failures: 0, lastFailureAt: 0 };

export function nextBackoffRecord(
  previous: BackoffRecord,
  succeeded: readonly Pod[],
  failed: readonly Pod[],
): BackoffRecord {
  if (succeeded.length === 0 && failed.length === 0) return previous;
  const failures = failed.map(finishTimeOf);
  if (succeeded.length === 0) {
    return { failures: previous.failures + failures.length, lastFailureAt: Math.max(...failures) };
  }
  const lastSuccessAt = Math.max(...succeeded.map(finishTimeOf));
  const later = failures.filter((at) => at > lastSuccessAt);
  return later.length === 0 ? NO_FAILURES : { failures: later.length, lastFailureAt: Math.max(...later) };
}

/** Milliseconds until a pod may be created. */
export function backoffRemaining({ failures, lastFailureAt }: BackoffRecord, now: number): number {
  if (failures === 0) return 0;
  const delay = Math.min(MAX_MS, INITIAL_MS * 2 ** (failures - 1));
  return Math.max(0, lastFailureAt + delay - now);
}
