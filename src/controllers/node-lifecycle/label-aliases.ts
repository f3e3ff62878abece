/** Former names of node labels, which get the values of today's names. */
import type { Node } from "../../api/core/node/schema.ts";

const ALIASES = { "kubernetes.io/os": "beta.kubernetes.io/os", "kubernetes.io/arch": "beta.kubernetes.io/arch" };

/** The aliases that are absent or differ, with their values; undefined if all are up to date. */
export function outdatedAliases({ metadata }: Node): Readonly<Record<string, string>> | undefined {
  const labels = metadata?.labels ?? {};
  const outdated = Object.entries(ALIASES).flatMap(([name, alias]) => {
    const value = labels[name];
    return value === undefined || labels[alias] === value ? [] : [[alias, value] as const];
  });
  return outdated.length === 0 ? undefined : Object.fromEntries(outdated);
}
