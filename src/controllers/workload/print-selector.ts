import type { LabelSelector } from "../../api/meta/label-selector.ts";

/** The selector as Kubernetes prints it in events. */
export function printSelector({ matchLabels, matchExpressions }: LabelSelector): string {
  const labels = Object.entries(matchLabels ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}: ${value},`);
  const expressions = (matchExpressions ?? []).map(
    ({ key, operator, values }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${(values ?? []).join(" ")}],},`,
  );
  const all =
    expressions.length === 0 ? "[]LabelSelectorRequirement{}" : `[]LabelSelectorRequirement{${expressions.join("")}}`;
  return `&LabelSelector{MatchLabels:map[string]string{${labels.join("")}},MatchExpressions:${all},}`;
}
