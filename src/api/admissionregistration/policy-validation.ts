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
  const parts = apiVersion.split("/");
  if (parts.length > 2) return [invalidField(path, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)];
  const [version = "", group = ""] = parts.toReversed();
  const problemsOf = (text: string, problems: readonly string[]): readonly FieldError[] =>
    problems.length === 0 ? [] : [invalidField(path, text, problems.join(","))];
  return [
    ...(group === "" ? [] : problemsOf(group, dns1123Subdomain(group))),
    ...(version === ""
      ? [invalidField(path, apiVersion, "version must be specified")]
      : problemsOf(version, dns1035Label(version))),
  ];
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
