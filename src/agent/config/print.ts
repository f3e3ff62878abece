/** `svc agent --dry-run-config`: the effective configuration as YAML, with the origin of each value. */
import { type Flag, printValue } from "../../flags/flag.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import { agentFlags } from "../flags.ts";
import { configApiVersion, configKind } from "./kubelet-names.ts";
import type { EffectiveConfig } from "./load.ts";
import { type Branch, formatSource } from "./origin.ts";

/** A file that `--config` can read, followed by the flags without a field in it. */
export function printConfig({ origins, flags, given }: EffectiveConfig): string {
  const lines = [`apiVersion: ${configApiVersion}`, `kind: ${configKind}`, ...branchLines(origins, 0)];
  lines.push("# Flags that have no field in the file:");
  for (const [name, row] of Object.entries(agentFlags as Readonly<Record<string, Flag>>)) {
    if (row.config !== undefined || name === "help" || name === "version" || name === "dry-run-config") continue;
    const value = printValue(row, (flags as Readonly<Record<string, unknown>>)[name]);
    lines.push(`# --${name}=${value}  # ${given.has(name) ? `flag --${name}` : "default"}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Lines are not folded: the origin stands behind each. */
const ONE_LINE = { width: Number.POSITIVE_INFINITY };

function branchLines(branch: Branch, depth: number): string[] {
  const pad = "  ".repeat(depth);
  return [...branch.members].flatMap(([name, node]) => {
    const label = `${pad}${scalar(name)}:`;
    if (node.kind === "branch") {
      return node.members.size === 0 ? [`${label} {}`] : [label, ...branchLines(node, depth + 1)];
    }
    const origin = `# ${formatSource(node.source)}`;
    if (!Array.isArray(node.value) || node.value.length === 0) return [`${label} ${scalar(node.value)}  ${origin}`];
    const items = encodeYaml(node.value, ONE_LINE).trimEnd().split("\n");
    return [`${label}  ${origin}`, ...items.map((item) => `${pad}${item}`)];
  });
}

/** One line of YAML. */
function scalar(value: unknown): string {
  return encodeYaml(value, ONE_LINE).trim();
}
