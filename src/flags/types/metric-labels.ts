/** Allow-lists of label values of metrics. */
import { ValueError, type ValueType } from "../flag.ts";
import { splitCsv } from "./csv.ts";

/** `metric,label` → the allowed label values. */
export type MetricLabels = Readonly<Record<string, readonly string[]>>;

/** `metric,label=a,b`, one per occurrence of the flag; values may be in single quotes. */
export const metricLabels: ValueType<MetricLabels> = {
  name: "map",
  allowed: "METRIC,LABEL=VALUE,VALUE",
  sample: "apiserver_request_total,verb=GET,LIST",
  wrong: "apiserver_request_total=GET",
  parse(text) {
    if (text === "" || text === "[]") return {};
    const match = /^([a-zA-Z_:][\w:]*),([a-zA-Z_]\w*)=(.*)$/.exec(text);
    if (match === null) throw new ValueError(`must be ${this.allowed}`);
    const [, metric, label, values = ""] = match;
    return { [`${metric},${label}`]: splitCsv(values.replace(/^'(.*)'$/, "$1")) };
  },
  print(labels) {
    const entries = Object.entries(labels);
    return entries.length === 0 ? "[]" : entries.map(([key, values]) => `${key}=${values.join(",")}`).join(" ");
  },
  add: (previous, next) => ({ ...previous, ...next }),
};
