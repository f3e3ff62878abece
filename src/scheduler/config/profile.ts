/** Which plugins of a profile run at which extension point. */

import type { FrameworkOptions, ScorePlugin } from "../framework/framework.ts";
import { type ExtensionPoint, extensionPoints, type Plugin } from "../framework/plugin.ts";
import type { PluginsConfiguration } from "./configuration.ts";
import { DEFAULT_PLUGINS } from "./default-plugins.ts";

interface EnabledPlugin {
  readonly name: string;
  readonly weight: number;
}

/** The names of plugins by extension point in their order, and the weights of scores. */
interface ProfilePlan {
  readonly points: ReadonlyMap<ExtensionPoint, readonly string[]>;
  readonly weights: ReadonlyMap<string, number>;
}

const pointsOf: ReadonlyMap<string, readonly ExtensionPoint[]> = new Map(
  DEFAULT_PLUGINS.map(({ name, points }) => [name, points]),
);

/** The order in which Kubernetes checks the points. */
const CHECKED: readonly ExtensionPoint[] = [
  "preFilter",
  "filter",
  "postFilter",
  "reserve",
  "preScore",
  "score",
  "preBind",
  "bind",
  "postBind",
  "permit",
  "preEnqueue",
  "queueSort",
];

export function expandPlugins(
  schedulerName: string,
  configured: PluginsConfiguration,
  available: ReadonlyMap<string, Plugin>,
): Pick<FrameworkOptions, "plugins" | "scorers"> {
  const { points, weights } = planProfile(schedulerName, configured);
  // A plugin whose feature is disabled implements no points.
  const pluginsAt = (point: ExtensionPoint): readonly Plugin[] =>
    (points.get(point) ?? []).flatMap((name) => {
      const plugin = available.get(name);
      return plugin?.points.includes(point) === true ? [plugin] : [];
    });
  const scorers = pluginsAt("score").map((plugin): ScorePlugin => ({ plugin, weight: weights.get(plugin.name) ?? 1 }));
  const entries = extensionPoints.filter((point) => point !== "score").map((point) => [point, pluginsAt(point)]);
  return { plugins: Object.fromEntries(entries) as FrameworkOptions["plugins"], scorers };
}

/** Throws with Kubernetes' message for the first mistake. */
export function planProfile(schedulerName: string, configured: PluginsConfiguration): ProfilePlan {
  for (const point of CHECKED) checkNames(point, configured[point]?.enabled ?? []);
  const multiPoint = mergeMultiPoint(configured);
  const points = new Map(CHECKED.map((point) => [point, namesAt(point, configured, multiPoint)]));
  const sorters = points.get("queueSort")?.length ?? 0;
  if (sorters !== 1) {
    const profile = `profile with scheduler name ${JSON.stringify(schedulerName)}`;
    throw new Error(`only one queue sort plugin required for ${profile}, but got ${sorters}`);
  }
  if (points.get("bind")?.length === 0) {
    throw new Error(
      `at least one bind plugin is needed for profile with scheduler name ${JSON.stringify(schedulerName)}`,
    );
  }
  return { points, weights: scoreWeights([...weighted(configured.score?.enabled), ...multiPoint]) };
}

function checkNames(point: ExtensionPoint, enabled: readonly { readonly name: string }[]): void {
  const seen = new Set<string>();
  for (const { name } of enabled) {
    if (!implementsPoint(name, point)) {
      throw new Error(`plugin ${JSON.stringify(name)} does not extend ${interfaceOf(point)} plugin`);
    }
    if (seen.has(name)) throw alreadyRegistered(name, point);
    seen.add(name);
  }
}

/**
 * Plugins that are enabled at the point and by `multiPoint` come first, then the others of `multiPoint`, then those of
 * the point alone. A plugin that is disabled and enabled at the point is one of the last.
 */
function namesAt(
  point: ExtensionPoint,
  configured: PluginsConfiguration,
  multiPoint: readonly EnabledPlugin[],
): readonly string[] {
  const { enabled = [], disabled = [] } = configured[point] ?? {};
  const named = enabled.map(({ name }) => name);
  if (disabled.some(({ name }) => name === "*")) return named;
  const again = new Set<string>();
  const implied = new Set<string>();
  for (const { name } of multiPoint) {
    if (!implementsPoint(name, point) || disabled.some((entry) => entry.name === name)) continue;
    if (named.includes(name)) {
      again.add(name);
    } else {
      if (implied.has(name)) throw alreadyRegistered(name, point);
      implied.add(name);
    }
  }
  return [...named.filter((name) => again.has(name)), ...implied, ...named.filter((name) => !again.has(name))];
}

function implementsPoint(name: string, point: ExtensionPoint): boolean {
  const points = pointsOf.get(name);
  if (points === undefined) throw new Error(`${interfaceOf(point)} ${JSON.stringify(name)} does not exist`);
  return points.includes(point);
}

function alreadyRegistered(name: string, point: ExtensionPoint): Error {
  return new Error(`plugin ${JSON.stringify(name)} already registered as ${JSON.stringify(interfaceOf(point))}`);
}

/** `PreFilterPlugin` */
function interfaceOf(point: ExtensionPoint): string {
  return `${point[0]?.toUpperCase()}${point.slice(1)}Plugin`;
}

/** Default plugins that are enabled again keep their place and lose their weight; others follow the default ones. */
function mergeMultiPoint({ multiPoint = {} }: PluginsConfiguration): readonly EnabledPlugin[] {
  const { disabled = [] } = multiPoint;
  const enabled = weighted(multiPoint.enabled);
  const isDisabled = (name: string): boolean => disabled.some((entry) => entry.name === "*" || entry.name === name);
  const replacing = new Set<EnabledPlugin>();
  const kept = DEFAULT_PLUGINS.filter(({ name }) => !isDisabled(name)).map(({ name, weight = 0 }) => {
    const again = enabled.findLast((entry) => entry.name === name);
    if (again !== undefined) replacing.add(again);
    return again ?? { name, weight };
  });
  return [...kept, ...enabled.filter((entry) => !replacing.has(entry))];
}

function weighted(
  plugins: readonly { readonly name: string; readonly weight?: number | undefined }[] = [],
): readonly EnabledPlugin[] {
  return plugins.map(({ name, weight = 0 }) => ({ name, weight }));
}

/** The first weight of each plugin counts; zero means 1. */
function scoreWeights(plugins: readonly EnabledPlugin[]): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  let total = 0;
  for (const { name, weight } of plugins) {
    if (!implementsPoint(name, "score") || weights.has(name)) continue;
    // After a negative weight Kubernetes' check of the total overflows.
    if (total < 0) throw new Error("total score of Score plugins could overflow");
    weights.set(name, weight === 0 ? 1 : weight);
    total += weight === 0 ? 1 : weight;
  }
  return weights;
}
