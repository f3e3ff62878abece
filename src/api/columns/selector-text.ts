/** Labels and label selectors in table cells. */
import type { LabelSelector } from "../meta/label-selector.ts";
import { type Requirement, requirementsOf } from "../meta/selectors/selector.ts";

const NOTHING = "<none>";

/** Labels as `app=web,env=prod`; `<none>` without labels. */
export function formatLabels(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.sort().join(",") || NOTHING;
}

/** A selector as `app=web,!old,tier in (a,b)`; `<none>` for an absent or empty one. */
export function formatLabelSelector(selector: LabelSelector | undefined): string {
  if (selector === undefined) return NOTHING;
  const equal = Object.entries(selector.matchLabels ?? {}).map(
    ([key, value]) => ({ key, text: `${key}=${value}` }) as const,
  );
  const expressions = requirementsOf({ matchExpressions: selector.matchExpressions }).map(
    (requirement) => ({ key: requirement.key, text: formatRequirement(requirement) }) as const,
  );
  const sorted = [...equal, ...expressions].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return sorted.map(({ text }) => text).join(",") || NOTHING;
}

function formatRequirement({ key, operator, values }: Requirement): string {
  switch (operator) {
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    default:
      return `${key} ${operator.toLowerCase()} (${[...values].sort().join(",")})`;
  }
}
