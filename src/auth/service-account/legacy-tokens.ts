/**
 * Legacy tokens without expiration, stored in Secrets. A label of the Secret has the day of the last use, so that
 * unused tokens can be cleaned up; a ConfigMap has the day on which this tracking started.
 */

export const LAST_USED_LABEL = "kubernetes.io/legacy-token-last-used";
export const INVALID_SINCE_LABEL = "kubernetes.io/legacy-token-invalid-since";

/** `since` is a day: uses before it were not tracked. */
export const LEGACY_TRACKING = {
  namespace: "kube-system",
  name: "kube-apiserver-legacy-service-account-token-tracking",
} as const;
export const TRACKED_SINCE = "since";

export const DAY_MS = 86_400_000;

/** The day in UTC, `2026-01-31`. Days sort as text. */
export function dayOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 10);
}

/** The start of the day; undefined for an invalid date. */
export function startOfDay(day: string | undefined): number | undefined {
  if (day === undefined || !/^\d{4}-\d\d-\d\d$/.test(day)) return undefined;
  const start = Date.parse(`${day}T00:00:00Z`);
  // Rejects dates such as 30 February.
  return Number.isNaN(start) || dayOf(start) !== day ? undefined : start;
}
