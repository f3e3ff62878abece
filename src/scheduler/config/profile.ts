/** Which plugins of a profile run at which extension point. */

import type { FrameworkOptions, ScorePlugin } from "../framework/framework.ts";
import { type ExtensionPoint, extensionPoints, type Plugin } from "../framework/plugin.ts";
import { DEFAULT_PLUGINS } from "../plugins/registry.ts";
import type { PluginsConfiguration } from "./configuration.ts";

interface EnabledPlugin {
  readonly name: string;
  readonly weight: number;
}

/** Throws for a plugin that does not exist. */
export function expandPlugins(
  configured: PluginsConfiguration,
  available: ReadonlyMap<string, Plugin>,
): Pick<FrameworkOptions, "plugins" | "scorers"> {
  const multiPoint = mergeMultiPoint(configured);
  const enabledAt = (point: ExtensionPoint): readonly EnabledPlugin[] => {
    const { enabled = [], disabled = [] } = configured[point] ?? {};
    const isDisabled = (name: string): boolean => disabled.some((entry) => entry.name === name || entry.name === "*");
    const named = enabled.map(({ name, weight }) => ({ name, weight: weight ?? 0 }));
    const implied = multiPoint.filter(
      ({ name }) =>
        find(available, name).points.includes(point) &&
        !isDisabled(name) &&
        !named.some((entry) => entry.name === name),
    );
    // A default plugin that is also enabled at the point keeps its place there.
    return [
      ...named.filter(({ name }) => isDefault(name, multiPoint)),
      ...implied,
      ...named.filter(({ name }) => !isDefault(name, multiPoint)),
    ];
  };
  const pluginsAt = (point: ExtensionPoint): readonly Plugin[] =>
    enabledAt(point).map(({ name }) => find(available, name));
  const scorers = enabledAt("score").map(
    ({ name, weight }): ScorePlugin => ({ plugin: find(available, name), weight: weight === 0 ? 1 : weight }),
  );
  const entries = extensionPoints.filter((point) => point !== "score").map((point) => [point, pluginsAt(point)]);
  return { plugins: Object.fromEntries(entries) as FrameworkOptions["plugins"], scorers };
}

function isDefault(name: string, multiPoint: readonly EnabledPlugin[]): boolean {
  return multiPoint.some((entry) => entry.name === name);
}

/** Plugins that are enabled again with another weight keep their place; others follow the default ones. */
function mergeMultiPoint({ multiPoint = {} }: PluginsConfiguration): readonly EnabledPlugin[] {
  const { enabled = [], disabled = [] } = multiPoint;
  const all = disabled.some(({ name }) => name === "*");
  const kept = DEFAULT_PLUGINS.filter(({ name }) => !all && !disabled.some((entry) => entry.name === name));
  const replaced = kept.map(({ name, weight = 0 }) => {
    const again = enabled.find((entry) => entry.name === name);
    return { name, weight: again?.weight ?? weight };
  });
  const added = enabled
    .filter(({ name }) => !kept.some((entry) => entry.name === name))
    .map(({ name, weight = 0 }) => ({ name, weight }));
  return [...replaced, ...added];
}

function find(available: ReadonlyMap<string, Plugin>, name: string): Plugin {
  const plugin = available.get(name);
  if (plugin === undefined) {
    throw new Error(`plugin ${JSON.stringify(name)} does not exist; allowed: ${[...available.keys()].join(", ")}`);
  }
  return plugin;
}
