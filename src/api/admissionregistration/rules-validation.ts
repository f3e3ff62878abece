/** Rules for the match criteria of webhooks and policies: operations, resources, conditions, selectors. */
import type { Environment } from "../../cel/environment.ts";
import { boolType } from "../../cel/values/types.ts";
import {
  type BadValue,
  duplicateField,
  errorsMax,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  tooMany,
  unquoted,
  validateEach,
  validateEachInSteps,
} from "../../schema/validation/field-error.ts";
import { child, index } from "../../schema/value/field-path.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { Steps } from "../../std/async/steps.ts";
import { validateLabelSelector } from "../meta/validation/label-selector.ts";
import { pathSegment, qualifiedName } from "../meta/validation/names.ts";
import { validateExpression } from "./expressions.ts";
import type { MatchCondition, MatchResources, NamedRuleWithOperations, RuleWithOperations } from "./rules.ts";

const OPERATIONS = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES = ["*", "Cluster", "Namespaced"];
export const MATCH_POLICIES = ["Equivalent", "Exact"];
export const FAILURE_POLICIES = ["Fail", "Ignore"];
const CONDITIONS_MAX = 64;

export function validateRuleWithOperations(rule: RuleWithOperations, path: string): readonly FieldError[] {
  const operations = rule.operations ?? [];
  const at = child(path, "operations");
  return [
    ...validateList(operations, at, "operations", goList("OperationType", operations)),
    ...validateEach(operations, (operation, i) => validateChoice(operation, OPERATIONS, index(at, i))),
    ...validateList(rule.apiGroups ?? [], child(path, "apiGroups"), "API groups"),
    ...validateList(rule.apiVersions ?? [], child(path, "apiVersions"), "API versions"),
    ...validatePresent(rule.apiVersions ?? [], child(path, "apiVersions")),
    ...validateResources(rule.resources ?? [], child(path, "resources")),
    ...validateChoice(rule.scope, SCOPES, child(path, "scope")),
  ];
}

/** Accepts an absent value, but not an empty one. */
export function validateChoice(
  value: string | undefined,
  choices: readonly string[],
  path: string,
): readonly FieldError[] {
  return value === undefined || choices.includes(value) ? [] : [notSupported(path, value, choices)];
}

/** Requires at least one value, and no others beside `*`. */
function validateList(
  values: readonly string[],
  path: string,
  what: string,
  shown: BadValue = values,
): readonly FieldError[] {
  if (values.length === 0) return [requiredField(path)];
  const both = values.length > 1 && values.includes("*");
  return both ? [invalidField(path, shown, `if '*' is present, must not specify other ${what}`)] : [];
}

/** As Go prints a list of a string type: `[]admissionregistration.OperationType{"*"}`. */
export function goList(type: string, values: readonly string[]): BadValue {
  return unquoted(`[]admissionregistration.${type}{${values.map((value) => goQuote(value)).join(", ")}}`);
}

function validatePresent(values: readonly string[], path: string): readonly FieldError[] {
  return validateEach(values, (value, i) => (value === "" ? [requiredField(index(path, i))] : []));
}

/** Resources such as `pods` and `pods/status`, with `*` for either part. Rejects those that a wildcard includes. */
function validateResources(resources: readonly string[], path: string): readonly FieldError[] {
  if (resources.length === 0) return [requiredField(path)];
  const errors: FieldError[] = [];
  const allOf = new Set<string>();
  const ofAll = new Set<string>();
  for (const [i, resource] of resources.entries()) {
    if (errors.length >= errorsMax) break;
    const slash = resource.indexOf("/");
    if (resource === "") errors.push(requiredField(index(path, i)));
    if (slash < 0) continue;
    const [whole, part] = [resource.slice(0, slash), resource.slice(slash + 1)];
    const reject = (wider: string): void => {
      errors.push(invalidField(index(path, i), resource, `if '${wider}' is present, must not specify ${resource}`));
    };
    if (allOf.has(whole)) reject(`${whole}/*`);
    if (ofAll.has(part)) reject(`*/${part}`);
    if (part === "*") allOf.add(whole);
    if (whole === "*") ofAll.add(part);
  }
  if (resources.length > 1 && resources.includes("*/*")) {
    errors.push(invalidField(path, resources, "if '*/*' is present, must not specify other resources"));
  }
  // As in Kubernetes, the last of those without a subresource decides.
  const plain = resources.findLast((resource) => !resource.includes("/"));
  if (resources.includes("*") && plain !== "*") {
    const detail = "if '*' is present, must not specify other resources without subresources";
    errors.push(invalidField(path, resources, detail));
  }
  return errors;
}

/** Compiling an expression takes milliseconds: yields after each. */
export function* validateMatchConditions(
  conditions: readonly MatchCondition[],
  names: Environment,
  path: string,
): Steps<readonly FieldError[]> {
  const count = conditions.length > CONDITIONS_MAX ? [tooMany(path, conditions.length, CONDITIONS_MAX)] : [];
  const seen = new Set<string>();
  const errors = yield* validateEachInSteps(conditions, ({ name, expression }, i) => {
    const at = index(path, i);
    const twice = name !== "" && seen.has(name);
    seen.add(name);
    return [
      ...validateExpression(expression, names, [boolType], child(at, "expression")),
      ...(name === ""
        ? [requiredField(child(at, "name"))]
        : qualifiedName(name).map((problem) => invalidField(child(at, "name"), name, problem))),
      ...(twice ? [duplicateField(child(at, "name"), name)] : []),
    ];
  });
  return [...count, ...errors];
}

/** Accepts an absent value. */
export function validateMatchResources(match: MatchResources | undefined, path: string): readonly FieldError[] {
  if (match === undefined) return [];
  const { namespaceSelector, objectSelector, matchPolicy } = match;
  const named = (rules: readonly NamedRuleWithOperations[] = [], at: string): readonly FieldError[] =>
    validateEach(rules, (rule, i) => validateNamedRule(rule, index(at, i)));
  return [
    ...(matchPolicy === undefined ? [requiredField(child(path, "matchPolicy"))] : []),
    ...validateChoice(matchPolicy, MATCH_POLICIES, child(path, "matchPolicy")),
    ...validateSelector(namespaceSelector, child(path, "namespaceSelector")),
    ...validateSelector(objectSelector, child(path, "objectSelector")),
    ...named(match.resourceRules, child(path, "resourceRules")),
    ...named(match.excludeResourceRules, child(path, "excludeResourceRules")),
  ];
}

function validateSelector(selector: MatchResources["objectSelector"], path: string): readonly FieldError[] {
  return selector === undefined ? [requiredField(path)] : validateLabelSelector(selector, path);
}

function validateNamedRule(rule: NamedRuleWithOperations, path: string): readonly FieldError[] {
  const seen = new Set<string>();
  const at = child(path, "resourceNames");
  const names = validateEach(rule.resourceNames ?? [], (name, i) => {
    const twice = seen.has(name);
    seen.add(name);
    return [
      ...pathSegment(name).map((problem) => invalidField(index(at, i), name, problem)),
      ...(twice ? [duplicateField(index(at, i), name)] : []),
    ];
  });
  return [...names, ...validateRuleWithOperations(rule, path)];
}

/** The default scope is `*`. */
export function setRuleDefaults<T extends RuleWithOperations>(rule: T): T {
  return rule.scope === undefined ? { ...rule, scope: "*" } : rule;
}
