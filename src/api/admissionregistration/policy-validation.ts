/** Rules that validating and mutating admission policies share: parameters and match constraints. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
} from "../../schema/validation/field-error.ts";
import { child } from "../../schema/value/field-path.ts";
import { validateLabelSelector } from "../meta/validation/label-selector.ts";
import { dns1035Label, dns1123Subdomain, pathSegment } from "../meta/validation/names.ts";
import { parseApiVersion } from "../scheme.ts";
import type { MatchResources } from "./rules.ts";
import { FAILURE_POLICIES, validateChoice, validateMatchResources } from "./rules-validation.ts";
import type { ParamKind, ParamRef } from "./validating-admission-policy/schema.ts";

const NOT_FOUND_ACTIONS = ["Deny", "Allow"];

export function validateFailurePolicy(policy: string | undefined, path: string): readonly FieldError[] {
  return policy === undefined ? [requiredField(path)] : validateChoice(policy, FAILURE_POLICIES, path);
}

/** Accepts an absent value. */
export function validateParamKind(paramKind: ParamKind | undefined, path: string): readonly FieldError[] {
  if (paramKind === undefined) return [];
  const { apiVersion = "", kind = "" } = paramKind;
  const at = child(path, "apiVersion");
  return [
    ...(apiVersion === "" ? [requiredField(at)] : validateParamVersion(apiVersion, at)),
    ...validateParamKindName(kind, child(path, "kind")),
  ];
}

function validateParamKindName(kind: string, path: string): readonly FieldError[] {
  if (kind === "") return [requiredField(path)];
  const problems = dns1035Label(kind.toLowerCase());
  if (problems.length === 0) return [];
  return [invalidField(path, kind, `may have mixed case, but should otherwise match: ${problems.join(",")}`)];
}

function validateParamVersion(apiVersion: string, path: string): readonly FieldError[] {
  const parsed = parseApiVersion(apiVersion);
  if (parsed === undefined) {
    return [invalidField(path, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)];
  }
  return dns1035Label(parsed.version).map((problem) => invalidField(path, apiVersion, problem));
}

export function validateConstraints(constraints: MatchResources | undefined, path: string): readonly FieldError[] {
  if (constraints === undefined) return [requiredField(path)];
  const nothing = (constraints.resourceRules ?? []).length === 0;
  return [
    ...validateMatchResources(constraints, path),
    ...(nothing ? [requiredField(child(path, "resourceRules"))] : []),
  ];
}

export function validatePolicyName(name: string, path: string): readonly FieldError[] {
  if (name === "") return [requiredField(path)];
  return dns1123Subdomain(name).map((problem) => invalidField(path, name, problem));
}

/** Accepts an absent value. */
export function validateParamRef(ref: ParamRef | undefined, path: string): readonly FieldError[] {
  if (ref === undefined) return [];
  const { name = "", selector, parameterNotFoundAction } = ref;
  const both = name !== "" && selector !== undefined;
  const neither = name === "" && selector === undefined;
  const at = `${path}.parameterNotFoundAction`;
  const exclusive = "name and selector are mutually exclusive";
  return [
    ...(name === "" ? [] : pathSegment(name).map((problem) => invalidField(`${path}.name`, name, problem))),
    ...(both ? [forbiddenField(`${path}.name`, exclusive)] : []),
    ...(neither ? [requiredField(path, "one of name or selector must be specified")] : []),
    ...validateLabelSelector(selector, `${path}.selector`),
    ...(both ? [forbiddenField(`${path}.selector`, exclusive)] : []),
    ...(parameterNotFoundAction === undefined || parameterNotFoundAction === ""
      ? [requiredField(at)]
      : NOT_FOUND_ACTIONS.includes(parameterNotFoundAction)
        ? []
        : [notSupported(at, parameterNotFoundAction, NOT_FOUND_ACTIONS)]),
  ];
}
