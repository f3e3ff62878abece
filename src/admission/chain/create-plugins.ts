/** Creates the admission plugins that the flags enable. */

import { plugins } from "../plugins/built-in-plugins.ts";
import { readAdmissionConfiguration } from "./configuration.ts";
import type { PluginDeps, PluginRow } from "./factory.ts";
import type { AdmissionPlugin } from "./plugin.ts";

export interface AdmissionSettings {
  /** In addition to those enabled by default. */
  readonly enabled: readonly string[];
  readonly disabled: readonly string[];
  /** The path of the file with the configurations of plugins. */
  readonly controlFile: string | undefined;
}

export interface CreatedPlugins {
  /** In the order in which they run. */
  readonly plugins: readonly AdmissionPlugin[];
  /** Names of plugins that are enabled by default and that this build does not have. */
  readonly missing: readonly string[];
}

/** Throws an error in one sentence, for the operator. */
export async function createPlugins(
  { enabled, disabled, controlFile }: AdmissionSettings,
  deps: Omit<PluginDeps, "configuration">,
  rows: readonly PluginRow[] = plugins,
): Promise<CreatedPlugins> {
  const names = rows.map(({ name }) => name);
  const configurations = controlFile === undefined ? new Map() : readAdmissionConfiguration(controlFile, names);
  const created: AdmissionPlugin[] = [];
  const missing: string[] = [];
  for (const { name, enabledByDefault, featureGate, create } of rows) {
    const isRequested = enabled.includes(name);
    if (!isRequested && (!enabledByDefault || disabled.includes(name))) continue;
    if (create === undefined) {
      if (isRequested) throw new Error(`Cannot use --enable-admission-plugins=${name}: this build does not have it`);
      if (featureGate === undefined || deps.isFeatureEnabled(featureGate)) missing.push(name);
      continue;
    }
    if (featureGate !== undefined && !deps.isFeatureEnabled(featureGate)) continue;
    created.push(await create({ ...deps, configuration: configurations.get(name) }));
  }
  return { plugins: created, missing };
}
