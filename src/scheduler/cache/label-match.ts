/** Label selectors, compiled once and matched against many objects. */
import type { LabelSelector } from "../../api/meta/label-selector.ts";
import { matchesValue, type Requirement, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { getMember } from "../../schema/value/plain-object.ts";

export type Labels = Readonly<Record<string, string>>;

const NO_LABELS: Labels = {};

export interface Selector {
  /** Equal for equal selectors. */
  readonly key: string;
  /** Has no requirements and matches everything. */
  readonly isEmpty: boolean;
  matches(labels: Labels | undefined): boolean;
}

const NOTHING: Selector = { key: "nothing", isEmpty: false, matches: () => false };

/** Without a selector nothing matches; `extra` are further requirements. */
export function compileSelector(selector: LabelSelector | undefined, extra: readonly Requirement[] = []): Selector {
  return selector === undefined ? NOTHING : selectorOf([...requirementsOf(selector), ...extra]);
}

export function selectorOf(requirements: readonly Requirement[]): Selector {
  return {
    key: JSON.stringify(requirements.map(({ key, operator, values }) => [key, operator, values])),
    isEmpty: requirements.length === 0,
    matches(labels = NO_LABELS) {
      for (const requirement of requirements) {
        if (!matchesRequirement(requirement, labels)) return false;
      }
      return true;
    },
  };
}

function matchesRequirement(requirement: Requirement, labels: Labels): boolean {
  const { key } = requirement;
  const value = getMember(labels, key);
  if (requirement.operator === "In" && requirement.values.length === 1) return value === requirement.values[0];
  return matchesValue(requirement, value);
}

/** Requirements from labels of the pod itself; keys that it does not have are ignored. */
export function ownLabelRequirements(
  labels: Labels,
  keys: readonly string[] | undefined,
  operator: "In" | "NotIn",
): readonly Requirement[] {
  return (keys ?? []).flatMap((key) => {
    const value = getMember(labels, key);
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });
}
