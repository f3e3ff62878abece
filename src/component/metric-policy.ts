/** The metric policy of the flags: allowed label values, disabled and hidden metrics. */
import { readFile } from "node:fs/promises";
import { parseYaml } from "../schema/yaml/yaml.ts";
import type { MetricPolicy } from "../std/metrics/metrics.ts";

export interface MetricsConfig {
  /** `metric,label` → the allowed values; other values become `unexpected`. */
  readonly allowedLabels: Readonly<Record<string, readonly string[]>>;
  /** A YAML file with the same content; the flag takes precedence. */
  readonly allowedLabelsFile: string | undefined;
  readonly disabled: readonly string[];
  /** Show hidden deprecated metrics. */
  readonly showHidden: boolean;
}

/** The minor version of Kubernetes that defines the metrics. */
const MINOR = 33;
const KEY = /^[a-zA-Z_:][\w:]*,[a-zA-Z_]\w*$/;

/** Rejects with one sentence for an invalid manifest. */
export async function loadMetricPolicy(config: MetricsConfig): Promise<MetricPolicy> {
  const fromFile = config.allowedLabelsFile === undefined ? {} : await readManifest(config.allowedLabelsFile);
  const allowed = { ...fromFile, ...config.allowedLabels };
  return {
    disabled: new Set(config.disabled),
    allowedValues: new Map(Object.entries(allowed).map(([key, values]) => [key, new Set(values)])),
    showHidden: config.showHidden,
    isHidden: (since) => Number(since.split(".")[1]) < MINOR,
  };
}

async function readManifest(path: string): Promise<Readonly<Record<string, readonly string[]>>> {
  const error = (why: string, cause?: unknown) =>
    new Error(`Cannot use --allow-metric-labels-manifest="${path}": ${why}`, { cause });
  let content: unknown;
  try {
    content = parseYaml(await readFile(path, "utf8"))[0]?.value;
  } catch (cause) {
    throw error(cause instanceof Error ? cause.message : String(cause), cause);
  }
  if (content === null || content === undefined) return {};
  if (typeof content !== "object" || Array.isArray(content)) throw error("it must map METRIC,LABEL to VALUE,VALUE");
  return Object.fromEntries(
    Object.entries(content).map(([key, values]) => {
      if (!KEY.test(key)) throw error(`"${key}" must be METRIC,LABEL`);
      if (typeof values !== "string") throw error(`"${key}" must have its values in one string: VALUE,VALUE`);
      return [key, values.split(",")];
    }),
  );
}
