/** Rules of Kubernetes 1.33 for where a pod may run: node and pod affinity, topology spread. */
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
} from "../../schema/field-error.ts";
import { child, index } from "../../schema/field-path.ts";
import { validateLabelSelector } from "../meta/label-selector-validation.ts";
import { dns1123Label, labelValue, qualifiedName } from "../meta/names.ts";
import type { Affinity, PodAffinityTerm, TopologySpreadConstraint } from "./affinity.ts";
import type { PodSpec } from "./pod.ts";
import type { NodeSelector, NodeSelectorTerm } from "./selector.ts";

export function validateScheduling(spec: PodSpec, path: string): readonly FieldError[] {
  return [
    ...(spec.affinity === undefined ? [] : validateAffinity(spec.affinity, child(path, "affinity"))),
    ...validateSpread(spec.topologySpreadConstraints ?? [], child(path, "topologySpreadConstraints")),
  ];
}

function validateAffinity(affinity: Affinity, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const node = child(path, "nodeAffinity");
  const demanded = affinity.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (demanded !== undefined) {
    errors.push(...validateNodeSelector(demanded, child(node, "requiredDuringSchedulingIgnoredDuringExecution")));
  }
  const wished = affinity.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  for (const [i, term] of wished.entries()) {
    const at = index(child(node, "preferredDuringSchedulingIgnoredDuringExecution"), i);
    errors.push(...validateWeight(term.weight, at), ...validateNodeTerm(term.preference, child(at, "preference")));
  }
  for (const field of ["podAffinity", "podAntiAffinity"] as const) {
    const terms = affinity[field];
    const required = child(child(path, field), "requiredDuringSchedulingIgnoredDuringExecution");
    for (const [i, term] of (terms?.requiredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
      errors.push(...validatePodTerm(term, index(required, i)));
    }
    const preferred = child(child(path, field), "preferredDuringSchedulingIgnoredDuringExecution");
    for (const [i, term] of (terms?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
      const at = index(preferred, i);
      errors.push(...validateWeight(term.weight, at));
      errors.push(...validatePodTerm(term.podAffinityTerm, child(at, "podAffinityTerm")));
    }
  }
  return errors;
}

export function validateNodeSelector(selector: NodeSelector, path: string): readonly FieldError[] {
  const at = child(path, "nodeSelectorTerms");
  const terms = selector.nodeSelectorTerms;
  if (terms.length === 0) return [requiredField(at, "must have at least one node selector term")];
  return terms.flatMap((term, i) => validateNodeTerm(term, index(at, i)));
}

function validateWeight(weight: number, path: string): FieldError[] {
  return weight >= 1 && weight <= 100
    ? []
    : [invalidField(child(path, "weight"), weight, "must be in the range 1-100")];
}

const setOperators = new Set(["In", "NotIn"]);
const presenceOperators = new Set(["Exists", "DoesNotExist"]);

function validateNodeTerm(term: NodeSelectorTerm, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, expression] of (term.matchExpressions ?? []).entries()) {
    const at = index(child(path, "matchExpressions"), i);
    const { key, operator } = expression;
    const values = expression.values ?? [];
    const field = child(at, "values");
    if (setOperators.has(operator)) {
      if (values.length === 0)
        errors.push(requiredField(field, "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if (presenceOperators.has(operator)) {
      if (values.length > 0) {
        errors.push(forbiddenField(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
      }
    } else if (operator === "Gt" || operator === "Lt") {
      if (values.length !== 1) {
        errors.push(requiredField(field, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
      }
    } else errors.push(invalidField(child(at, "operator"), operator, "not a valid selector operator"));
    errors.push(...qualifiedName(key).map((problem) => invalidField(child(at, "key"), key, problem)));
    for (const [place, value] of values.entries()) {
      errors.push(...labelValue(value).map((problem) => invalidField(index(field, place), value, problem)));
    }
  }
  for (const [i, { key, operator, values }] of (term.matchFields ?? []).entries()) {
    const at = index(child(path, "matchFields"), i);
    if (operator !== "In" && operator !== "NotIn") {
      errors.push(invalidField(child(at, "operator"), operator, "not a valid selector operator"));
    } else if (values?.length !== 1) {
      const detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
      errors.push(requiredField(child(at, "values"), detail));
    }
    if (key !== "metadata.name") {
      errors.push(invalidField(child(at, "key"), key, "not a valid field selector key"));
    }
  }
  return errors;
}

function validatePodTerm(term: PodAffinityTerm, path: string): FieldError[] {
  return [
    ...validateLabelSelector(term.labelSelector, child(path, "labelSelector")),
    ...validateLabelSelector(term.namespaceSelector, child(path, "namespaceSelector")),
    ...(term.namespaces ?? []).flatMap((name) =>
      dns1123Label(name).map((problem) => invalidField(child(path, "namespace"), name, problem)),
    ),
    ...validateKeys(term.matchLabelKeys ?? [], child(path, "matchLabelKeys")),
    ...validateKeys(term.mismatchLabelKeys ?? [], child(path, "mismatchLabelKeys")),
    ...(term.topologyKey === "" ? [requiredField(child(path, "topologyKey"), "can not be empty")] : []),
    ...qualifiedName(term.topologyKey).map((problem) =>
      invalidField(child(path, "topologyKey"), term.topologyKey, problem),
    ),
  ];
}

function validateKeys(keys: readonly string[], path: string): FieldError[] {
  return keys.flatMap((name, i) => qualifiedName(name).map((problem) => invalidField(index(path, i), name, problem)));
}

function validateSpread(constraints: readonly TopologySpreadConstraint[], path: string): FieldError[] {
  const seen = new Set<string>();
  const errors: FieldError[] = [];
  for (const [i, constraint] of constraints.entries()) {
    const at = index(path, i);
    const { maxSkew, minDomains, topologyKey, whenUnsatisfiable } = constraint;
    if (maxSkew <= 0) errors.push(invalidField(child(at, "maxSkew"), maxSkew, "must be greater than zero"));
    if (topologyKey === "") errors.push(requiredField(child(at, "topologyKey"), "can not be empty"));
    errors.push(
      ...qualifiedName(topologyKey).map((problem) => invalidField(child(at, "topologyKey"), topologyKey, problem)),
    );
    // Any other text is outside the closed set, which the schema refuses.
    if ((whenUnsatisfiable as string) === "") {
      errors.push(notSupported(child(at, "whenUnsatisfiable"), "", ["DoNotSchedule", "ScheduleAnyway"]));
    }
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`;
    if (seen.has(pair)) errors.push(duplicateField(child(at, "{topologyKey, whenUnsatisfiable}"), pair));
    seen.add(pair);
    if (minDomains !== undefined) {
      const field = child(at, "minDomains");
      if (minDomains <= 0) errors.push(invalidField(field, minDomains, "must be greater than zero"));
      else if (whenUnsatisfiable !== "DoNotSchedule") {
        const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`;
        errors.push(invalidField(field, minDomains, detail));
      }
    }
    const keys = constraint.matchLabelKeys ?? [];
    const field = child(at, "matchLabelKeys");
    if (keys.length > 0 && constraint.labelSelector === undefined) {
      errors.push(forbiddenField(field, "must not be specified when labelSelector is not set"));
    }
    errors.push(
      ...validateKeys(keys, field),
      ...validateLabelSelector(constraint.labelSelector, child(at, "labelSelector")),
    );
  }
  return errors;
}
