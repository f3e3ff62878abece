/** From what the operator wants to the plugins that are asked. */
import { readControlFile } from "./configuration.ts";
import type { PluginDeps, PluginRow } from "./factory.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { plugins } from "../plugins/built-in-plugins.ts";

export interface AdmissionSettings {
  /** Beside those that are on by default. */
  readonly enabled: readonly string[];
  readonly disabled: readonly string[];
  /** What plugins are told; nothing when undefined. */
  readonly controlFile: string | undefined;
}

export interface Configured {
  /** In the order in which they are asked. */
  readonly plugins: readonly AdmissionPlugin[];
  /** Names of those that would be on by default, and that this build does not have. */
  readonly missing: readonly string[];
}

/** Throws one sentence for an operator. */
export async function configuredPlugins(
  { enabled, disabled, controlFile }: AdmissionSettings,
  deps: Omit<PluginDeps, "configuration">,
  rows: readonly PluginRow[] = plugins,
): Promise<Configured> {
  const names = rows.map(({ name }) => name);
  const configurations = controlFile === undefined ? new Map() : readControlFile(controlFile, names);
  const made: AdmissionPlugin[] = [];
  const missing: string[] = [];
  for (const { name, byDefault, gate, make } of rows) {
    const asked = enabled.includes(name);
    if (!asked && (!byDefault || disabled.includes(name))) continue;
    if (make === undefined) {
      if (asked) throw new Error(`Cannot use --enable-admission-plugins=${name}: this build does not have it`);
      if (gate === undefined || deps.isOn(gate)) missing.push(name);
      continue;
    }
    if (gate !== undefined && !deps.isOn(gate)) continue;
    made.push(await make({ ...deps, configuration: configurations.get(name) }));
  }
  return { plugins: made, missing };
}
