/** Compares rules to prevent privilege escalation: users must not grant permissions that they do not have. */
import type { PolicyRule } from "../../../api/rbac/policy-rule.ts";
import { svcGroup } from "../../../api/scheme.ts";
import { runSteps, type Steps } from "../../../std/async/steps.ts";

/** Parts of one step: each is compared with all rules of a user. */
const STEP_PARTS = 100;
/** A message about more would be longer than any role needs. */
const UNCOVERED_MAX = 1000;

/** The parts of `requested` that `owned` does not cover, each for one verb of one resource or path. */
export function findUncovered(owned: readonly PolicyRule[], requested: readonly PolicyRule[]): readonly PolicyRule[] {
  return runSteps(findUncoveredInSteps(owned, requested));
}

/** The same, for roles of users: the first `UNCOVERED_MAX` parts. */
export function* findUncoveredInSteps(
  owned: readonly PolicyRule[],
  requested: readonly PolicyRule[],
): Steps<readonly PolicyRule[]> {
  const uncovered: PolicyRule[] = [];
  let compared = 0;
  for (const rule of requested) {
    for (const part of breakDown(rule)) {
      if (compared++ % STEP_PARTS === 0) yield;
      if (owned.some((one) => isCovered(one, part))) continue;
      uncovered.push(part);
      if (uncovered.length === UNCOVERED_MAX) return uncovered;
    }
  }
  return uncovered;
}

/** The number of such simple rules: lists in a rule multiply. */
export function countCombinations(rules: readonly PolicyRule[]): number {
  return rules.reduce((sum, { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }) => {
    const objects = apiGroups.length * resources.length * Math.max(1, resourceNames.length);
    return sum + verbs.length * (objects + nonResourceURLs.length);
  }, 0);
}

/** Merges simple rules that differ only by verb; rules for paths are not merged. */
export function compactRules(pieces: readonly PolicyRule[]): readonly PolicyRule[] {
  const paths: PolicyRule[] = [];
  const objects = new Map<string, PolicyRule>();
  for (const piece of pieces) {
    if (piece.nonResourceURLs !== undefined) {
      paths.push(piece);
      continue;
    }
    const key = JSON.stringify([piece.apiGroups, piece.resources, piece.resourceNames]);
    const known = objects.get(key);
    objects.set(key, known === undefined ? piece : { ...known, verbs: [...known.verbs, ...piece.verbs] });
  }
  return [...paths, ...objects.values()];
}

function breakDown(rule: PolicyRule): readonly PolicyRule[] {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const names = resourceNames.length === 0 ? [undefined] : resourceNames;
  return verbs.flatMap((verb) => [
    ...apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        names.map((name) => ({
          verbs: [verb],
          apiGroups: [group],
          resources: [resource],
          ...(name === undefined ? {} : { resourceNames: [name] }),
        })),
      ),
    ),
    ...nonResourceURLs.map((url) => ({ verbs: [verb], nonResourceURLs: [url] })),
  ]);
}

/** `simple` has one verb, and one resource or path. */
function isCovered(rule: PolicyRule, simple: PolicyRule): boolean {
  if (!includesOrAll(rule.verbs, simple.verbs[0]!)) return false;
  const [url] = simple.nonResourceURLs ?? [];
  if (url !== undefined) return (rule.nonResourceURLs ?? []).some((pattern) => urlCovers(pattern, url));
  const [name] = simple.resourceNames ?? [];
  const names = rule.resourceNames ?? [];
  return (
    includesOrAll((rule.apiGroups ?? []).map(svcGroup), svcGroup(simple.apiGroups![0]!)) &&
    resourceCovers(rule.resources ?? [], simple.resources![0]!) &&
    (names.length === 0 || (name !== undefined && names.includes(name)))
  );
}

function includesOrAll(list: readonly string[], value: string): boolean {
  return list.includes("*") || list.includes(value);
}

function resourceCovers(resources: readonly string[], requested: string): boolean {
  const slash = requested.indexOf("/");
  return includesOrAll(resources, requested) || (slash >= 0 && resources.includes(`*${requested.slice(slash)}`));
}

function urlCovers(pattern: string, url: string): boolean {
  if (pattern === "*" || pattern === url) return true;
  return pattern.endsWith("*") && url.startsWith(pattern.slice(0, -1));
}
