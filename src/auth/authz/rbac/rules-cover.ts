/** Whether rules allow all that other rules allow: nobody may hand out what they do not have themselves. */
import type { PolicyRule } from "../../../api/rbac/policy-rule.ts";
import { svcGroup } from "../../../api/scheme.ts";

/** The rules of `wanted` that `owned` does not cover, each cut down to one verb of one resource or path. */
export function uncovered(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): readonly PolicyRule[] {
  return wanted.flatMap(pieces).filter((piece) => !owned.some((rule) => covers(rule, piece)));
}

/** How many there are of such pieces: lists in a rule multiply. */
export function combinations(rules: readonly PolicyRule[]): number {
  return rules.reduce((sum, { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }) => {
    const objects = apiGroups.length * resources.length * Math.max(1, resourceNames.length);
    return sum + verbs.length * (objects + nonResourceURLs.length);
  }, 0);
}

/** Pieces that differ by their verbs only become one again; rules about paths stay as they are. */
export function compacted(pieces: readonly PolicyRule[]): readonly PolicyRule[] {
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

function pieces(rule: PolicyRule): readonly PolicyRule[] {
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

/** `piece` names one of everything. */
function covers(rule: PolicyRule, piece: PolicyRule): boolean {
  if (!allows(rule.verbs, piece.verbs[0]!)) return false;
  const [url] = piece.nonResourceURLs ?? [];
  if (url !== undefined) return (rule.nonResourceURLs ?? []).some((pattern) => urlCovers(pattern, url));
  const [name] = piece.resourceNames ?? [];
  const names = rule.resourceNames ?? [];
  return (
    allows((rule.apiGroups ?? []).map(svcGroup), svcGroup(piece.apiGroups![0]!)) &&
    resourceCovers(rule.resources ?? [], piece.resources![0]!) &&
    (names.length === 0 || (name !== undefined && names.includes(name)))
  );
}

function allows(list: readonly string[], value: string): boolean {
  return list.includes("*") || list.includes(value);
}

function resourceCovers(resources: readonly string[], wanted: string): boolean {
  const slash = wanted.indexOf("/");
  return allows(resources, wanted) || (slash >= 0 && resources.includes(`*${wanted.slice(slash)}`));
}

function urlCovers(pattern: string, url: string): boolean {
  if (pattern === "*" || pattern === url) return true;
  return pattern.endsWith("*") && url.startsWith(pattern.slice(0, -1));
}
