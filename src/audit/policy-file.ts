/** Reads the audit policy file. Error messages are those of Kubernetes. */
import { readFileSync } from "node:fs";
import { dns1123Subdomain } from "../api/meta/validation/names.ts";
import { decode } from "../schema/decode/decode.ts";
import { boolean, list, named, object, optional, pointer, string } from "../schema/define.ts";
import { readTypeMeta } from "../schema/json/type-meta.ts";
import type { Infer } from "../schema/schema.ts";
import {
  type FieldError,
  invalidField,
  notSupported,
  renderFieldErrors,
  requiredField,
} from "../schema/validation/field-error.ts";
import { parseYamlOrJson, type YamlDocument } from "../schema/yaml/yaml.ts";
import { type AuditPolicy, LEVELS, type Level, STAGES, type Stage } from "./policy.ts";

const strings = (): ReturnType<typeof list<typeof string>> => list(string);

export const policySchema = object("audit/v1.Policy", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  metadata: optional(0, object("audit/v1.PolicyMetadata", { name: optional(0, string) })),
  omitStages: optional(0, list(named("v1.Stage", string))),
  omitManagedFields: optional(0, boolean),
  rules: optional(
    0,
    list(
      object("audit/v1.PolicyRule", {
        level: optional(0, named("v1.Level", string)),
        users: optional(0, strings()),
        userGroups: optional(0, strings()),
        verbs: optional(0, strings()),
        resources: optional(
          0,
          list(
            object("audit/v1.GroupResources", {
              group: optional(0, string),
              resources: optional(0, strings()),
              resourceNames: optional(0, strings()),
            }),
          ),
        ),
        namespaces: optional(0, strings()),
        nonResourceURLs: optional(0, strings()),
        omitStages: optional(0, list(named("v1.Stage", string))),
        omitManagedFields: pointer(0, boolean),
      }),
    ),
  ),
});
type PolicyValue = Infer<typeof policySchema>;
type RuleValue = NonNullable<PolicyValue["rules"]>[number];

const GROUPS = ["audit.svc.io", "audit.k8s.io"];
/** Larger than any valid file; a wrong path must not fill the memory. */
const FILE_BYTES_MAX = 3 * 1024 * 1024;

export interface LoadedPolicy {
  readonly policy: AuditPolicy;
  /** What the file contains beyond a policy: unknown and repeated fields, with their lines. */
  readonly warnings: readonly string[];
}

/**
 * Throws one sentence for a file that is no valid policy. Unknown fields are only reported, as in Kubernetes. `text`:
 * what the file contains; it is read when absent.
 */
export function readAuditPolicy(path: string, text?: string): LoadedPolicy {
  try {
    return parsePolicy(path, text ?? readText(path));
  } catch (cause) {
    throw new Error(`loading audit policy file: ${(cause as Error).message}: from file ${path}`, { cause });
  }
}

function readText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw new Error(`failed to read file path "${path}": ${(cause as Error).message}`, { cause });
  }
  if (bytes.length > FILE_BYTES_MAX) throw new Error(`the file has more than ${FILE_BYTES_MAX} bytes`);
  return bytes.toString("utf8");
}

function parsePolicy(path: string, text: string): LoadedPolicy {
  const document = parseDocument(text);
  const value = document?.value ?? {};
  checkIdentity(value);
  const { value: policy, unknown, errors } = decode(policySchema, value);
  if (errors[0] !== undefined) throw new Error(`failed decoding: ${errors[0].message}`);
  const invalid = validatePolicy(policy);
  if (invalid.length > 0) throw new Error(renderFieldErrors(invalid));
  const { rules = [], omitStages = [], omitManagedFields = false } = policy;
  if (rules.length === 0) throw new Error("loaded illegal policy with 0 rules");
  const at = (field: string): string => `${path}:${document?.line(field) ?? 1}`;
  const warnings = [
    ...unknown.map((field) => `${at(field)}: unknown field "${field}"`),
    ...(document?.duplicates ?? []).map((field) => `${at(field)}: field "${field}" is set twice`),
  ];
  return {
    policy: { rules: rules.map(toRule), omitStages: omitStages as readonly Stage[], omitManagedFields },
    warnings,
  };
}

function parseDocument(text: string): YamlDocument | undefined {
  try {
    return parseYamlOrJson(text).find(({ value }) => value !== undefined && value !== null);
  } catch (cause) {
    throw new Error(`failed decoding: ${(cause as Error).message}`, { cause });
  }
}

/** The kind may be absent. */
function checkIdentity(value: unknown): void {
  const { apiVersion, kind } = readIdentity(value);
  const isPolicy = kind === "Policy" || kind === "";
  if (apiVersion === "" && isPolicy) {
    throw new Error("unknown group version field audit.k8s.io/__internal, Kind=Policy in policy");
  }
  const isKnown = GROUPS.some((group) => apiVersion === `${group}/v1`);
  if (!isKnown || !(isPolicy || ["Event", "EventList", "PolicyList"].includes(kind))) {
    const what = `no kind "${kind || "Policy"}" is registered for version "${apiVersion}"`;
    throw new Error(`failed decoding: ${what} in scheme "pkg/audit/scheme.go:30"`);
  }
  if (!isPolicy) throw new Error(`failed decoding: converting (v1.${kind}) to (audit.Policy): unknown conversion`);
}

function readIdentity(value: unknown): ReturnType<typeof readTypeMeta> {
  try {
    return readTypeMeta(value);
  } catch (cause) {
    throw new Error(`failed decoding: ${(cause as Error).message}`, { cause });
  }
}

function validatePolicy({ omitStages = [], rules = [] }: PolicyValue): readonly FieldError[] {
  return [
    ...validateStages(omitStages, "omitStages"),
    ...rules.flatMap((rule, index) => validateRule(rule, `rules[${index}]`)),
  ];
}

function validateRule(rule: RuleValue, path: string): readonly FieldError[] {
  const { level = "", nonResourceURLs = [], resources = [], namespaces = [], omitStages = [] } = rule;
  const urls = `${path}.nonResourceURLs`;
  const both = nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0);
  const what = "rules cannot apply to both regular resources and non-resource URLs";
  return [
    ...validateLevel(level, `${path}.level`),
    ...nonResourceURLs.flatMap((url, index) => validateUrl(url, `${urls}[${index}]`)),
    ...resources.flatMap((each) => validateResources(each, `${path}.resources`)),
    ...validateStages(omitStages, `${path}.omitStages`),
    ...(both ? [invalidField(urls, nonResourceURLs, what)] : []),
  ];
}

function validateLevel(level: string, path: string): readonly FieldError[] {
  if (level === "") return [requiredField(path)];
  return (LEVELS as readonly string[]).includes(level) ? [] : [notSupported(path, level, LEVELS)];
}

function validateUrl(url: string, path: string): readonly FieldError[] {
  if (url === "*") return [];
  const errors: FieldError[] = [];
  if (!url.startsWith("/")) {
    errors.push(invalidField(path, url, "non-resource URL rules must begin with a '/' character"));
  }
  if (url.slice(0, -1).includes("*")) {
    errors.push(invalidField(path, url, "non-resource URL wildcards '*' must be the final character of the rule"));
  }
  return errors;
}

function validateResources(
  { group = "", resources = [], resourceNames = [] }: NonNullable<RuleValue["resources"]>[number],
  path: string,
): readonly FieldError[] {
  const messages = group === "" ? [] : dns1123Subdomain(group);
  const errors = messages.length === 0 ? [] : [invalidField(`${path}.group`, group, messages.join(","))];
  if (resourceNames.length === 0 || resources.length > 0) return errors;
  const what = "using resourceNames requires at least one resource";
  return [...errors, invalidField(`${path}.resourceNames`, resourceNames, what)];
}

function validateStages(stages: readonly string[], path: string): readonly FieldError[] {
  const what = `allowed stages are ${STAGES.join(",")}`;
  return stages.flatMap((stage, index) =>
    (STAGES as readonly string[]).includes(stage) ? [] : [invalidField(`${path}[${index}]`, stage, what)],
  );
}

function toRule(rule: RuleValue): AuditPolicy["rules"][number] {
  const { users = [], userGroups = [], verbs = [], resources = [], namespaces = [], nonResourceURLs = [] } = rule;
  return {
    level: rule.level as Level,
    users,
    userGroups,
    verbs,
    resources: resources.map(({ group = "", resources: names = [], resourceNames = [] }) => {
      return { group, resources: names, resourceNames };
    }),
    namespaces,
    nonResourceURLs,
    omitStages: (rule.omitStages ?? []) as readonly Stage[],
    omitManagedFields: rule.omitManagedFields ?? undefined,
  };
}
