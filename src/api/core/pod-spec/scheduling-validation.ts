/** Rules for node affinity, pod affinity and topology spread constraints. */
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { LabelSelector } from "../../meta/label-selector.ts";
import { validateLabelSelector, validateOperator } from "../../meta/validation/label-selector.ts";
import {
  dns1123Label,
  dns1123Subdomain,
  labelValue,
  qualifiedName,
  validateName,
} from "../../meta/validation/names.ts";
import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm } from "../node/selector.ts";
import type { Affinity, NodeAffinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint } from "./affinity.ts";
import type { PodSpec } from "./schema.ts";

/** Exemptions for values that the stored object has already. */
export interface SchedulingValidationOptions {
  /** Values in required node affinity that are not label values. */
  readonly allowInvalidNodeAffinityValues?: boolean;
  /** Invalid label selectors of topology spread constraints. */
  readonly allowInvalidTopologySpreadSelectors?: boolean;
}

export function validateScheduling(
  spec: PodSpec,
  path: string,
  options: SchedulingValidationOptions = {},
): readonly FieldError[] {
  const constraints = child(path, "topologySpreadConstraints");
  return [
    ...validateAffinity(spec.affinity, child(path, "affinity"), options),
    ...validateSpread(spec.topologySpreadConstraints ?? [], constraints, options),
  ];
}

export function validateAffinity(
  affinity: Affinity | undefined,
  path: string,
  options: SchedulingValidationOptions,
): readonly FieldError[] {
  return [
    ...validateNodeAffinity(affinity?.nodeAffinity, child(path, "nodeAffinity"), options),
    ...validatePodAffinity(affinity?.podAffinity, child(path, "podAffinity")),
    ...validatePodAffinity(affinity?.podAntiAffinity, child(path, "podAntiAffinity")),
  ];
}

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

function validateNodeAffinity(
  affinity: NodeAffinity | undefined,
  path: string,
  options: SchedulingValidationOptions,
): readonly FieldError[] {
  const required = affinity?.[REQUIRED];
  return [
    ...(required === undefined
      ? []
      : validateNodeSelector(required, child(path, REQUIRED), {
          allowInvalidValues: options.allowInvalidNodeAffinityValues === true,
        })),
    ...validateEach(affinity?.[PREFERRED] ?? [], ({ weight, preference }, i) => {
      const at = index(child(path, PREFERRED), i);
      // Invalid values of preferred terms cause a warning instead of an error.
      const term = validateNodeTerm(preference, child(at, "preference"), { allowInvalidValues: true });
      return [...validateWeight(weight, at), ...term];
    }),
  ];
}

export interface NodeSelectorValidationOptions {
  readonly allowInvalidValues?: boolean;
}

export function validateNodeSelector(
  selector: NodeSelector,
  path: string,
  options: NodeSelectorValidationOptions = {},
): readonly FieldError[] {
  const at = child(path, "nodeSelectorTerms");
  const terms = selector.nodeSelectorTerms;
  if (terms.length === 0) return [requiredField(at, "must have at least one node selector term")];
  return validateEach(terms, (term, i) => validateNodeTerm(term, index(at, i), options));
}

function validateWeight(weight: number, path: string): readonly FieldError[] {
  if (weight >= 1 && weight <= 100) return [];
  return [invalidField(child(path, "weight"), weight, "must be in the range 1-100")];
}

function validateNodeTerm(
  term: NodeSelectorTerm,
  path: string,
  options: NodeSelectorValidationOptions,
): readonly FieldError[] {
  return [
    ...validateEach(term.matchExpressions ?? [], (expression, i) =>
      validateExpression(expression, index(child(path, "matchExpressions"), i), options),
    ),
    ...validateEach(term.matchFields ?? [], (field, i) =>
      validateMatchField(field, index(child(path, "matchFields"), i)),
    ),
  ];
}

function validateExpression(
  { key, operator, values = [] }: NodeSelectorRequirement,
  path: string,
  options: NodeSelectorValidationOptions,
): readonly FieldError[] {
  const at = child(path, "values");
  return [
    ...validateNodeOperator(operator, values, path),
    ...validateName(child(path, "key"), key, qualifiedName),
    ...validateEach(options.allowInvalidValues === true ? [] : values, (value, i) =>
      validateName(index(at, i), value, labelValue),
    ),
  ];
}

function validateNodeOperator(operator: string, values: readonly string[], path: string): readonly FieldError[] {
  if (operator !== "Gt" && operator !== "Lt") return validateOperator(operator, values, path);
  const detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
  return values.length === 1 ? [] : [requiredField(child(path, "values"), detail)];
}

/** Of the fields of nodes, only `metadata.name` can be selected. */
function validateMatchField(
  { key, operator, values = [] }: NodeSelectorRequirement,
  path: string,
): readonly FieldError[] {
  const at = child(path, "values");
  const errors: FieldError[] = [];
  if (operator !== "In" && operator !== "NotIn") {
    errors.push(invalidField(child(path, "operator"), operator, "not a valid selector operator"));
  } else if (values.length !== 1) {
    const detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    errors.push(requiredField(at, detail));
  }
  if (key !== "metadata.name") {
    return [...errors, invalidField(child(path, "key"), key, "not a valid field selector key")];
  }
  return [...errors, ...validateEach(values, (value, i) => validateName(index(at, i), value, dns1123Subdomain))];
}

function validatePodAffinity(affinity: PodAffinity | undefined, path: string): readonly FieldError[] {
  return [
    ...validateEach(affinity?.[REQUIRED] ?? [], (term, i) => validatePodTerm(term, index(child(path, REQUIRED), i))),
    ...validateEach(affinity?.[PREFERRED] ?? [], ({ weight, podAffinityTerm }, i) => {
      const at = index(child(path, PREFERRED), i);
      return [...validateWeight(weight, at), ...validatePodTerm(podAffinityTerm, child(at, "podAffinityTerm"))];
    }),
  ];
}

function validatePodTerm(term: PodAffinityTerm, path: string): readonly FieldError[] {
  const { labelSelector, namespaceSelector, namespaces = [], topologyKey } = term;
  const { matchLabelKeys = [], mismatchLabelKeys = [] } = term;
  const mismatching = new Set(mismatchLabelKeys);
  const key = child(path, "topologyKey");
  const [match, mismatch] = [child(path, "matchLabelKeys"), child(path, "mismatchLabelKeys")];
  return [
    ...validateLabelSelector(labelSelector, child(path, "labelSelector")),
    ...validateLabelSelector(namespaceSelector, child(path, "namespaceSelector")),
    ...validateEach(namespaces, (name) => validateName(child(path, "namespace"), name, dns1123Label)),
    ...validateLabelKeys(matchLabelKeys, labelSelector, match),
    ...validateLabelKeys(mismatchLabelKeys, labelSelector, mismatch),
    ...validateSelectedKeys(matchLabelKeys, labelSelector, path),
    ...validateEach(matchLabelKeys, (name, i) =>
      mismatching.has(name)
        ? [invalidField(index(match, i), name, "exists in both matchLabelKeys and mismatchLabelKeys")]
        : [],
    ),
    ...(topologyKey === "" ? [requiredField(key, "can not be empty")] : []),
    ...validateName(key, topologyKey, qualifiedName),
  ];
}

function validateLabelKeys(
  keys: readonly string[],
  selector: LabelSelector | undefined,
  path: string,
): readonly FieldError[] {
  if (keys.length === 0) return [];
  if (selector === undefined) return [forbiddenField(path, "must not be specified when labelSelector is not set")];
  return validateEach(keys, (name, i) => validateName(index(path, i), name, qualifiedName));
}

/**
 * The server adds a requirement for each of the keys before validation, so that a second one with the key is the
 * client's. Errors have the term's path, as in Kubernetes.
 */
function validateSelectedKeys(
  keys: readonly string[],
  selector: LabelSelector | undefined,
  path: string,
): readonly FieldError[] {
  const positions = new Map(keys.map((name, i) => [name, i]));
  const selected = new Set(Object.keys(selector?.matchLabels ?? {}));
  return validateEach(selector?.matchExpressions ?? [], ({ key: name }) => {
    const position = positions.get(name);
    const repeated = position !== undefined && selected.has(name);
    selected.add(name);
    return repeated
      ? [invalidField(index(path, position), name, "exists in both matchLabelKeys and labelSelector")]
      : [];
  });
}

const UNSATISFIABLE = ["DoNotSchedule", "ScheduleAnyway"];
const INCLUSIONS = ["Honor", "Ignore"];

export function validateSpread(
  constraints: readonly TopologySpreadConstraint[],
  path: string,
  options: SchedulingValidationOptions,
): readonly FieldError[] {
  const last = new Map(
    constraints.map(({ topologyKey, whenUnsatisfiable }, i) => [`${whenUnsatisfiable} ${topologyKey}`, i]),
  );
  return validateEach(constraints, (constraint, i) => {
    const at = index(path, i);
    const { topologyKey, whenUnsatisfiable, labelSelector } = constraint;
    const repeated = last.get(`${whenUnsatisfiable} ${topologyKey}`) !== i;
    const pair = child(at, "{topologyKey, whenUnsatisfiable}");
    return [
      ...validateConstraint(constraint, at),
      ...(repeated ? [duplicateField(pair, `{${topologyKey}, ${whenUnsatisfiable}}`)] : []),
      ...validateMinDomains(constraint, child(at, "minDomains")),
      ...validateInclusion(constraint.nodeAffinityPolicy, child(at, "nodeAffinityPolicy")),
      ...validateInclusion(constraint.nodeTaintsPolicy, child(at, "nodeTaintsPolicy")),
      ...validateMatchLabelKeys(constraint, child(at, "matchLabelKeys")),
      ...(options.allowInvalidTopologySpreadSelectors === true
        ? []
        : validateLabelSelector(labelSelector, child(at, "labelSelector"))),
    ];
  });
}

function validateConstraint(constraint: TopologySpreadConstraint, path: string): readonly FieldError[] {
  const { maxSkew, topologyKey } = constraint;
  const whenUnsatisfiable: string = constraint.whenUnsatisfiable;
  const errors: FieldError[] = [];
  if (maxSkew <= 0) errors.push(invalidField(child(path, "maxSkew"), maxSkew, "must be greater than zero"));
  if (topologyKey === "") errors.push(requiredField(child(path, "topologyKey"), "can not be empty"));
  if (!UNSATISFIABLE.includes(whenUnsatisfiable)) {
    errors.push(notSupported(child(path, "whenUnsatisfiable"), whenUnsatisfiable, UNSATISFIABLE));
  }
  return errors;
}

function validateMinDomains(
  { minDomains, whenUnsatisfiable }: TopologySpreadConstraint,
  path: string,
): readonly FieldError[] {
  if (minDomains === undefined) return [];
  const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`;
  return [
    ...(minDomains <= 0 ? [invalidField(path, minDomains, "must be greater than zero")] : []),
    ...(whenUnsatisfiable === "DoNotSchedule" ? [] : [invalidField(path, minDomains, detail)]),
  ];
}

function validateInclusion(policy: string | undefined, path: string): readonly FieldError[] {
  return policy === undefined || INCLUSIONS.includes(policy) ? [] : [notSupported(path, policy, INCLUSIONS)];
}

/** The keys must not be in the selector as well, because their values come from the pod. */
function validateMatchLabelKeys(
  { matchLabelKeys = [], labelSelector }: TopologySpreadConstraint,
  path: string,
): readonly FieldError[] {
  if (matchLabelKeys.length === 0) return [];
  const selected = new Set([
    ...Object.keys(labelSelector?.matchLabels ?? {}),
    ...(labelSelector?.matchExpressions ?? []).map(({ key }) => key),
  ]);
  return [
    ...(labelSelector === undefined
      ? [forbiddenField(path, "must not be specified when labelSelector is not set")]
      : []),
    ...validateEach(matchLabelKeys, (name, i) => [
      ...validateName(index(path, i), name, qualifiedName),
      ...(selected.has(name)
        ? [invalidField(index(path, i), name, "exists in both matchLabelKeys and labelSelector")]
        : []),
    ]),
  ];
}
