const SECOND = 1000;
const MINUTE = 60;
const HOUR = 60;
const DAY = 24;
const YEAR = 365;

/**
 * Formats a duration for tables, with at most two units: `45s`, `3m20s`, `5h`, `2d3h`, `4y12d`. Follows
 * `duration.HumanDuration` of Kubernetes' apimachinery.
 */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / SECOND);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  const minutes = Math.trunc(seconds / MINUTE);
  if (minutes < 10) return formatPair(minutes, "m", seconds % MINUTE, "s");
  if (minutes < 3 * HOUR) return `${minutes}m`;
  const hours = Math.trunc(minutes / HOUR);
  if (hours < 8) return formatPair(hours, "h", minutes % HOUR, "m");
  if (hours < 2 * DAY) return `${hours}h`;
  if (hours < 8 * DAY) return formatPair(Math.trunc(hours / DAY), "d", hours % DAY, "h");
  const days = Math.trunc(hours / DAY);
  if (days < 2 * YEAR) return `${days}d`;
  if (days < 8 * YEAR) return formatPair(Math.trunc(days / YEAR), "y", days % YEAR, "d");
  return `${Math.trunc(days / YEAR)}y`;
}

function formatPair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

/** The age of an RFC 3339 timestamp; `<unknown>` without one. */
export function formatAge(time: string | undefined, now: number): string {
  const then = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(then) ? "<unknown>" : humanDuration(now - then);
}
