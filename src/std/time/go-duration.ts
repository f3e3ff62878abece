/** A duration as Go prints it: `612.345ms`, `1.5s`, `1m2.5s`, `0s`. Fractions of a nanosecond are dropped. */
export function formatGoDuration(milliseconds: number): string {
  const sign = milliseconds < 0 ? "-" : "";
  const nanoseconds = Math.floor(Math.abs(milliseconds) * 1e6);
  if (nanoseconds === 0) return "0s";
  if (nanoseconds < 1e3) return `${sign}${nanoseconds}ns`;
  if (nanoseconds < 1e6) return `${sign}${decimal(nanoseconds, 3)}µs`;
  if (nanoseconds < 1e9) return `${sign}${decimal(nanoseconds, 6)}ms`;
  const minutes = Math.floor(nanoseconds / 60e9);
  const seconds = `${decimal(nanoseconds - minutes * 60e9, 9)}s`;
  if (minutes === 0) return `${sign}${seconds}`;
  return minutes < 60
    ? `${sign}${minutes}m${seconds}`
    : `${sign}${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

/** `value` / 10^`digits` without trailing zeros. */
function decimal(value: number, digits: number): string {
  const whole = Math.floor(value / 10 ** digits);
  const rest = String(value % 10 ** digits)
    .padStart(digits, "0")
    .replace(/0+$/, "");
  return rest === "" ? String(whole) : `${whole}.${rest}`;
}
