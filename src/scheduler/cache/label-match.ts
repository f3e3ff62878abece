/** Label selectors, compiled once and matched against many objects. */
import type { LabelSelector } from "../../api/meta/label-selector.ts";
import { matchesValue, type Requirement, requirementsOf } from "../../api/meta/selectors/selector.ts";

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
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  if (requirement.operator === "In" && requirement.values.length === 1) return value === requirement.values[0];
  return matchesValue(requirement, value);
}

/** The value of a label that is the object's own, not inherited as `constructor` is. */
export function labelOf(labels: Labels | undefined, key: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/** Requirements from labels of the pod itself; keys that it does not have are ignored. */
export function ownLabelRequirements(
  labels: Labels,
  keys: readonly string[] | undefined,
  operator: "In" | "NotIn",
): readonly Requirement[] {
  return (keys ?? []).flatMap((key) => {
    const value = labelOf(labels, key);
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });
}
