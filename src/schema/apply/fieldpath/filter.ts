import {
  childrenOf,
  composeSubtree,
  type FieldSet,
  isMember,
  type MutableFieldSet,
  recursiveDifference,
  SELF,
} from "./field-set.ts";
import { fieldElement } from "./path-element.ts";

/** Removes the fields that a write cannot manage. */
export type FieldFilter = (fields: FieldSet) => FieldSet;

/** Removes these fields and all fields below them. */
export function excludeFields(fields: FieldSet): FieldFilter {
  return (set) => recursiveDifference(set, fields);
}

/** Steps of a path; `*` is any item. */
export type Pattern = readonly string[];

/** Keeps these fields, the fields below them and those on the path to them. */
export function includeFields(...patterns: readonly Pattern[]): FieldFilter {
  const steps = patterns.map((pattern) => pattern.map((step) => (step === "*" ? step : fieldElement(step))));
  return (set) => includeMatching(set, steps);
}

function includeMatching(set: FieldSet, patterns: readonly Pattern[]): FieldSet {
  const result: MutableFieldSet = {};
  for (const element in set) {
    if (element === SELF) continue;
    const fitting = patterns.filter(([step]) => step === "*" || step === element).map(([, ...rest]) => rest);
    if (fitting.length === 0) continue;
    const below = set[element]!;
    const whole = fitting.some((rest) => rest.length === 0);
    const left = whole ? below : composeSubtree(isMember(below), includeMatching(childrenOf(below), fitting));
    if (left !== undefined) result[element] = left;
  }
  return result;
}
