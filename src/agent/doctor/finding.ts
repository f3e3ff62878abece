import type { FindingId } from "./finding-kinds.ts";

export type Severity = "ok" | "warning" | "error";

export interface Finding {
  readonly id: FindingId;
  readonly severity: Severity;
  /** A sentence without an end, with values; never secrets. */
  readonly found: string;
}

export function finding(id: FindingId, severity: Severity, found: string): Finding {
  return { id, severity, found };
}

/** `ok` when there is no problem, otherwise `severity` with the problem. */
export function findingOf(
  id: FindingId,
  ok: string,
  problem: string | undefined,
  severity: Severity = "error",
): Finding {
  return problem === undefined ? finding(id, "ok", ok) : finding(id, severity, problem);
}
