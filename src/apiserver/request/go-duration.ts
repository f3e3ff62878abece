const UNITS_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Parses a Go duration such as `1m30s` to milliseconds; returns Go's error message when it is invalid. */
export function parseGoDuration(text: string): number | string {
  const quoted = JSON.stringify(text);
  const match = /^([-+]?)(.*)$/s.exec(text);
  let rest = match?.[2] ?? "";
  if (rest === "0") return 0;
  if (rest === "") return `time: invalid duration ${quoted}`;
  let total = 0;
  while (rest !== "") {
    const part = /^(\d+(?:\.\d*)?|\.\d+)([a-zµ]*)/.exec(rest);
    if (part === null) return `time: invalid duration ${quoted}`;
    const [whole, number = "", unit = ""] = part;
    if (unit === "") return `time: missing unit in duration ${quoted}`;
    const factor = UNITS_MS[unit];
    if (factor === undefined) return `time: unknown unit ${JSON.stringify(unit)} in duration ${quoted}`;
    total += Number(number) * factor;
    rest = rest.slice(whole.length);
  }
  return match?.[1] === "-" ? -total : total;
}
