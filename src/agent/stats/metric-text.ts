/** Prometheus' text format for samples with a time, which are written as they are read. */
import { escapeLabel, formatNumber } from "../../std/metrics/text-format.ts";

export interface SampleFamily {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
}

/** `a="1",b="2"`: labels in the order of the entries, those without a value included. */
export function formatLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabel(value)}"`)
    .join(",");
}

/** `timeMs`: milliseconds since 1970; undefined: the sample has no time. */
export function formatSample(name: string, labels: string, value: number, timeMs?: number): string {
  const time = timeMs === undefined ? "" : ` ${Math.round(timeMs)}`;
  return `${name}${labels === "" ? "" : `{${labels}}`} ${formatNumber(value)}${time}\n`;
}

/** Empty without samples. */
export function formatFamily({ name, type, help }: SampleFamily, samples: readonly string[]): string {
  return samples.length === 0 ? "" : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples.join("")}`;
}
