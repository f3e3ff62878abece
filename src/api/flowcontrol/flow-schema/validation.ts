/** Rules for flow schemas: subjects, rules and the priority level. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { dns1123Label, dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import { validateConditions } from "../condition-validation.ts";
import { mandatoryFlowSchemas } from "../mandatory-configuration.ts";
import {
  type FlowSchema,
  type FlowSchemaSpec,
  flowDistinguisherMethod,
  flowSchemaSpec,
  type NonResourcePolicyRule,
  type PolicyRulesWithSubjects,
  type ResourcePolicyRule,
  type Subject,
} from "./schema.ts";

const PRECEDENCE_MAX = 10_000;
const DISTINGUISHERS = ["ByNamespace", "ByUser"];
const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const SUBJECTS = ["Group", "ServiceAccount", "User"];

export function validateFlowSchema(object: FlowSchema): readonly FieldError[] {
  const { metadata, spec = emptySpec, status } = object;
  const name = metadata?.name ?? "";
  const fixed = Object.hasOwn(mandatoryFlowSchemas, name) ? mandatoryFlowSchemas[name] : undefined;
  return [
    ...validateSpec(name, spec, "spec"),
    ...(fixed === undefined || deepEqual(spec, fixed)
      ? []
      : [invalidField("spec", goStruct(flowSchemaSpec, spec), `spec of '${name}' must equal the fixed value`)]),
    ...validateConditions(status?.conditions ?? []),
  ];
}

/** The spec of a flow schema without one. */
export const emptySpec: FlowSchemaSpec = { priorityLevelConfiguration: { name: "" } };

function validateSpec(name: string, spec: FlowSchemaSpec, path: string): readonly FieldError[] {
  const { distinguisherMethod: method } = spec;
  const level = spec.priorityLevelConfiguration.name;
  const reference = child(path, "priorityLevelConfiguration.name");
  return [
    ...validatePrecedence(name, spec.matchingPrecedence ?? 0, child(path, "matchingPrecedence")),
    ...(method === undefined || DISTINGUISHERS.includes(method.type)
      ? []
      : [
          notSupported(
            child(path, "distinguisherMethod.type"),
            goStruct(flowDistinguisherMethod, method),
            DISTINGUISHERS,
          ),
        ]),
    ...(level === ""
      ? [requiredField(reference, "must reference a priority level")]
      : validateName(reference, level, dns1123Subdomain)),
    ...validateEach(spec.rules ?? [], (rule, i) => validateRule(rule, index(child(path, "rules"), i))),
  ];
}

function validatePrecedence(name: string, precedence: number, path: string): readonly FieldError[] {
  const invalid = (detail: string) => [invalidField(path, precedence, detail)];
  if (precedence <= 0) return invalid("must be a positive value");
  if (precedence > PRECEDENCE_MAX) return invalid(`must not be greater than ${PRECEDENCE_MAX}`);
  if (precedence !== 1 || name === "exempt") return [];
  return invalid("only the schema named 'exempt' may have matchingPrecedence 1");
}

function validateRule(rule: PolicyRulesWithSubjects, path: string): readonly FieldError[] {
  const { subjects, resourceRules = [], nonResourceRules = [] } = rule;
  const list = child(path, "subjects");
  return [
    ...(subjects.length === 0 ? [requiredField(list, "subjects must contain at least one value")] : []),
    ...validateEach(subjects, (subject, i) => validateSubject(subject, index(list, i))),
    ...(resourceRules.length + nonResourceRules.length === 0
      ? [requiredField(path, "at least one of resourceRules and nonResourceRules has to be non-empty")]
      : []),
    ...validateEach(resourceRules, (each, i) => validateResourceRule(each, index(child(path, "resourceRules"), i))),
    ...validateEach(nonResourceRules, (each, i) => validateUrlRule(each, index(child(path, "nonResourceRules"), i))),
  ];
}

/** Requires exactly the field of the subject's kind. */
function validateSubject(subject: Subject, path: string): readonly FieldError[] {
  const { kind, user, group, serviceAccount } = subject;
  const members = { ServiceAccount: serviceAccount, User: user, Group: group };
  if (!SUBJECTS.includes(kind)) return [notSupported(child(path, "kind"), kind, SUBJECTS)];
  return validateEach(
    Object.entries(members).sort(([a], [b]) => Number(b === kind) - Number(a === kind)),
    ([name, member]) => {
      const field = `${name.charAt(0).toLowerCase()}${name.slice(1)}`;
      const at = child(path, field);
      if (name !== kind) {
        const detail = `${field} is forbidden when subject kind is not '${name}'`;
        return member === undefined ? [] : [forbiddenField(at, detail)];
      }
      if (member === undefined) return [requiredField(at, `${field} is required when subject kind is '${kind}'`)];
      return "namespace" in member ? validateAccount(member, at) : validateNamed(member, at);
    },
  );
}

function validateNamed({ name }: { readonly name: string }, path: string): readonly FieldError[] {
  return name === "" ? [requiredField(child(path, "name"))] : [];
}

type Account = NonNullable<Subject["serviceAccount"]>;

function validateAccount({ name, namespace }: Account, path: string): readonly FieldError[] {
  const [nameAt, namespaceAt] = [child(path, "name"), child(path, "namespace")];
  return [
    ...validateNamed({ name }, path),
    ...(name === "" || name === "*" ? [] : validateName(nameAt, name, dns1123Subdomain)),
    ...(namespace === ""
      ? [requiredField(namespaceAt, "must specify namespace for service account")]
      : validateName(namespaceAt, namespace, dns1123Label)),
  ];
}

function validateVerbs(verbs: readonly string[], path: string): readonly FieldError[] {
  if (verbs.length === 0) return [requiredField(path, "verbs must contain at least one value")];
  if (verbs.includes("*")) return validateWildcard(verbs, path, "verbs");
  return verbs.every((verb) => VERBS.includes(verb)) ? [] : [notSupported(path, verbs, VERBS)];
}

/** No other value is allowed beside `*`. */
function validateWildcard(values: readonly string[], path: string, what: string): readonly FieldError[] {
  if (values.length <= 1 || !values.includes("*")) return [];
  return [invalidField(path, values, `if '*' is present, must not specify other ${what}`)];
}

function validateResourceRule(rule: ResourcePolicyRule, path: string): readonly FieldError[] {
  const { verbs, apiGroups, resources, clusterScope = false, namespaces = [] } = rule;
  const [groups, names, spaces] = [child(path, "apiGroups"), child(path, "resources"), child(path, "namespaces")];
  return [
    ...validateVerbs(verbs, child(path, "verbs")),
    ...(apiGroups.length === 0
      ? [requiredField(groups, "resource rules must supply at least one api group")]
      : validateWildcard(apiGroups, groups, "api groups")),
    ...(resources.length === 0
      ? [requiredField(names, "resource rules must supply at least one resource")]
      : validateWildcard(resources, names, "resources")),
    ...(namespaces.length === 0 && !clusterScope
      ? [requiredField(spaces, "resource rules that are not cluster scoped must supply at least one namespace")]
      : validateNamespaces(namespaces, spaces)),
  ];
}

function validateNamespaces(namespaces: readonly string[], path: string): readonly FieldError[] {
  if (namespaces.includes("*")) return validateWildcard(namespaces, path, "namespaces");
  return validateEach(namespaces, (name, i) =>
    dns1123Label(name).map((problem) => {
      const detail = `each member of this list must be '*' or a DNS-1123 label; ${problem}`;
      return invalidField(index(path, i), name, detail);
    }),
  );
}

function validateUrlRule({ verbs, nonResourceURLs }: NonResourcePolicyRule, path: string): readonly FieldError[] {
  const urls = child(path, "nonResourceURLs");
  return [
    ...validateVerbs(verbs, child(path, "verbs")),
    ...(nonResourceURLs.length === 0
      ? [requiredField(urls, "nonResourceURLs must contain at least one value")]
      : nonResourceURLs.includes("*")
        ? validateWildcard(nonResourceURLs, urls, "non-resource URLs")
        : validateEach(nonResourceURLs, (url, i) => validateUrl(url, index(urls, i)))),
  ];
}

function validateUrl(url: string, path: string): readonly FieldError[] {
  const problem = urlProblem(url);
  return problem === undefined ? [] : [invalidField(path, url, problem)];
}

function urlProblem(url: string): string | undefined {
  if (url === "") return "must not be empty";
  if (url === "/") return undefined;
  if (!url.startsWith("/")) return "must start with slash";
  if (url.includes(" ")) return "must not contain white-space";
  if (url.includes("//")) return "must not contain double slash";
  const first = url.indexOf("*");
  const isSuffix = first === url.length - 1 && url.endsWith("/*");
  return first === -1 || isSuffix ? undefined : "wildcard can only do suffix matching";
}
