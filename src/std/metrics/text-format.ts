/** Prometheus' text format, and OpenMetrics. */
import type { AnyFamily, Histogram, MetricOptions, MetricRegistry } from "./metrics.ts";

export type MetricFormat = "prometheus" | "openmetrics";

/** The families of all registries, by name. */
export function formatMetrics(registries: readonly MetricRegistry[], format: MetricFormat): string {
  const families = registries.flatMap((registry) => registry.collect());
  families.sort((a, b) => (a.options.name < b.options.name ? -1 : 1));
  const lines: string[] = [];
  for (const family of families) addFamily(lines, family, format === "openmetrics");
  if (format === "openmetrics") lines.push("# EOF");
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}

function addFamily(lines: string[], family: AnyFamily, open: boolean): void {
  const series = family.series();
  if (series.length === 0) return;
  const { name } = family.options;
  const counts = open && family.type === "counter";
  // In OpenMetrics a counter's samples end in `_total`; a counter without that suffix has type unknown.
  const title = counts && name.endsWith("_total") ? name.slice(0, -"_total".length) : name;
  lines.push(`# HELP ${title} ${escapeHelp(formatHelp(family.options), open)}`);
  lines.push(`# TYPE ${title} ${counts && title === name ? "unknown" : family.type}`);
  const named = family.labels.map((label, index) => ({ label, index })).sort((a, b) => (a.label < b.label ? -1 : 1));
  for (const one of series) {
    const labels = named.map(({ label, index }) => `${label}="${escapeLabel(one.values[index] ?? "")}"`).join(",");
    if ("value" in one) lines.push(`${name}${labels === "" ? "" : `{${labels}}`} ${formatNumber(one.value, open)}`);
    else addHistogram(lines, name, labels, one, open);
  }
}

function addHistogram(lines: string[], name: string, labels: string, histogram: Histogram, open: boolean): void {
  const before = labels === "" ? "" : `${labels},`;
  let count = 0;
  for (const [index, some] of histogram.counts.entries()) {
    count += some;
    const bound = histogram.bounds[index];
    const le = bound === undefined ? "+Inf" : formatNumber(bound, open);
    lines.push(`${name}_bucket{${before}le="${le}"} ${formatNumber(count, false)}`);
  }
  const braced = labels === "" ? "" : `{${labels}}`;
  lines.push(`${name}_sum${braced} ${formatNumber(histogram.sum, open)}`);
  lines.push(`${name}_count${braced} ${formatNumber(count, false)}`);
}

function formatHelp({ help, stability, deprecatedSince, experimental }: MetricOptions): string {
  const level = `${experimental === true ? "EXPERIMENTAL: " : ""}${stability === undefined ? "" : `[${stability}] `}`;
  return deprecatedSince === undefined ? `${level}${help}` : `${level}(Deprecated since ${deprecatedSince}) ${help}`;
}

function escapeHelp(text: string, open: boolean): string {
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return open ? escaped.replaceAll('"', '\\"') : escaped;
}

export function escapeLabel(text: string): string {
  return /[\\"\n]/.test(text) ? text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n") : text;
}

/** A number as Go prints it: `1e+06`, `0.005`, `1e-07`. OpenMetrics requires a dot or an exponent. */
export function formatNumber(value: number, open = false): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value === 0) return open ? "0.0" : "0";
  // Most values are small counts.
  if (!open && Number.isInteger(value) && value > 0 && value < 1e6) return String(value);
  const [digits = "", power = "0"] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) {
    const plain = String(value);
    return open && Number.isInteger(value) ? `${plain}.0` : plain;
  }
  const sign = exponent < 0 ? "-" : "+";
  return `${digits}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
