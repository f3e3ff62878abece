/** From what an operator says about metrics to what is shown. */
import { readFile } from "node:fs/promises";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import type { MetricPolicy } from "../../std/metrics/metrics.ts";

export interface MetricsConfig {
  /** `metric,label` → the values that are told apart. */
  readonly allowedLabels: Readonly<Record<string, readonly string[]>>;
  /** A file that says the same, in YAML; what the flag says wins. */
  readonly allowedLabelsFile: string | undefined;
  readonly disabled: readonly string[];
  /** Show what is deprecated and hidden for it. */
  readonly showHidden: boolean;
}

/** The minor release of Kubernetes whose metrics these are. */
const MINOR = 33;
const KEY = /^[a-zA-Z_:][\w:]*,[a-zA-Z_]\w*$/;

/** Throws with one sentence, naming the file and the entry, for a manifest that cannot be used. */
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
      if (typeof values !== "string") throw error(`"${key}" must have its values in one text: VALUE,VALUE`);
      return [key, values.split(",")];
    }),
  );
}
