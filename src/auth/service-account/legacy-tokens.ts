/**
 * Tokens without an end that lie in secrets. Each secret says on which day its token was used last, so that those which
 * nobody uses can be taken away; a config map says since when this is written down.
 */

export const LAST_USED_LABEL = "kubernetes.io/legacy-token-last-used";
export const INVALID_SINCE_LABEL = "kubernetes.io/legacy-token-invalid-since";

/** Holds `since`, a day: of tokens used before it nothing is known. */
export const LEGACY_TRACKING = {
  namespace: "kube-system",
  name: "kube-apiserver-legacy-service-account-token-tracking",
} as const;
export const TRACKED_SINCE = "since";

export const DAY_MS = 86_400_000;

/** The day in UTC, `2026-01-31`: of two days the earlier one is the smaller text. */
export function dayOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 10);
}

/** When the day began; undefined for what is no day. */
export function startOfDay(day: string | undefined): number | undefined {
  if (day === undefined || !/^\d{4}-\d\d-\d\d$/.test(day)) return undefined;
  const start = Date.parse(`${day}T00:00:00Z`);
  // The 30th of February is no day either.
  return Number.isNaN(start) || dayOf(start) !== day ? undefined : start;
}
