/** The file of `--authorization-policy-file`: one JSON policy on each line, v1beta1 or unversioned (v0). */
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import { AUTHENTICATED } from "../../user.ts";

/** A normalized policy: empty fields match nothing, `*` matches everything. */
export interface AbacPolicy {
  readonly user: string;
  readonly group: string;
  readonly readonly: boolean;
  readonly apiGroup: string;
  readonly resource: string;
  readonly namespace: string;
  readonly nonResourcePath: string;
}

export interface AbacFile {
  readonly policies: readonly AbacPolicy[];
  /** Warnings for the operator; the file is used. */
  readonly warnings: readonly string[];
}

const VERSIONS: ReadonlySet<string> = new Set([
  "abac.authorization.kubernetes.io/v1beta1",
  "abac.authorization.svc.io/v1beta1",
]);

type Members = Readonly<Record<string, unknown>>;

const STRING_FIELDS = ["user", "group", "apiGroup", "resource", "namespace", "nonResourcePath"] as const;
const FIELDS: ReadonlySet<string> = new Set([...STRING_FIELDS, "readonly"]);
/** The fields of v0. */
const FIELDS_V0: ReadonlySet<string> = new Set(["user", "group", "readonly", "resource", "namespace"]);

/** Ignores empty lines and lines that start with `#`. Throws an error with file and line for an invalid policy. */
export function parseAbacFile(path: string, text: string): AbacFile {
  const warnings: string[] = [];
  const unversioned: number[] = [];
  const policies = text.split("\n").flatMap((row, index) => {
    const line = index + 1;
    const content = row.trim();
    if (content === "" || content.startsWith("#")) return [];
    const { policy, version, unknown } = parseLine(path, line, content);
    if (version === 0) unversioned.push(line);
    for (const name of unknown) {
      warnings.push(`${path}:${line}: unknown field ${JSON.stringify(name)} is ignored`);
    }
    return [policy];
  });
  if (unversioned.length > 0) {
    const lines = unversioned.slice(0, 10).join(", ");
    warnings.push(
      `${path} has unversioned policies (lines ${lines}): they apply to all API groups, and to all ` +
        `values of fields that they do not set; set apiVersion ${[...VERSIONS][0]} and kind Policy`,
    );
  }
  return { policies, warnings };
}

interface ParsedLine {
  readonly policy: AbacPolicy;
  readonly version: 0 | 1;
  readonly unknown: readonly string[];
}

function parseLine(path: string, line: number, content: string): ParsedLine {
  const fail = (why: string): never => {
    throw new Error(`error reading policy file ${path}, line ${line}: ${content.slice(0, 200)}: ${why}`);
  };
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    return fail((error as Error).message);
  }
  if (!isPlainObject(value)) return fail("expected a JSON object");
  const { apiVersion, kind, ...rest } = value as Members;
  if (apiVersion === undefined && kind === undefined) {
    const { spec, problem } = readFields(rest);
    if (problem !== undefined) return fail(problem);
    return { policy: fromV0(spec), version: 0, unknown: unknownFields(rest, FIELDS_V0) };
  }
  if (typeof apiVersion !== "string" || !VERSIONS.has(apiVersion) || kind !== "Policy") {
    return fail(`no kind ${JSON.stringify(kind ?? "")} is registered for version ${JSON.stringify(apiVersion ?? "")}`);
  }
  const { spec = {}, ...beside } = rest;
  if (!isPlainObject(spec)) return fail("spec: expected an object");
  const members = readFields(spec as Members);
  if (members.problem !== undefined) return fail(`spec.${members.problem}`);
  const unknown = [...unknownFields(spec as Members, FIELDS).map((name) => `spec.${name}`), ...Object.keys(beside)];
  return { policy: restrictToAuthenticated(members.spec), version: 1, unknown };
}

function unknownFields(members: Members, known: ReadonlySet<string>): readonly string[] {
  return Object.keys(members).filter((name) => !known.has(name));
}

function readFields(members: Members): { readonly spec: AbacPolicy; readonly problem?: string } {
  const found: Record<string, string> = {};
  const { readonly = false } = members;
  let problem = typeof readonly === "boolean" ? undefined : "readonly: expected true or false";
  for (const name of STRING_FIELDS) {
    const value = members[name] ?? "";
    if (typeof value === "string") found[name] = value;
    else problem ??= `${name}: expected a string`;
  }
  const spec = { ...(found as Record<(typeof STRING_FIELDS)[number], string>), readonly: readonly === true };
  return problem === undefined ? { spec } : { spec, problem };
}

/** In v0, unset fields match everything. */
function fromV0(fields: AbacPolicy): AbacPolicy {
  const matchesAllUsers = fields.user === "" && fields.group === "";
  return restrictToAuthenticated({
    ...fields,
    group: matchesAllUsers ? AUTHENTICATED : fields.group,
    apiGroup: "*",
    namespace: fields.namespace === "" ? "*" : fields.namespace,
    resource: fields.resource === "" ? "*" : fields.resource,
    nonResourcePath: fields.namespace === "" && fields.resource === "" ? "*" : "",
  });
}

/** `*` does not include unauthenticated users. */
function restrictToAuthenticated(policy: AbacPolicy): AbacPolicy {
  if (policy.user !== "*" && policy.group !== "*") return policy;
  return { ...policy, user: "", group: AUTHENTICATED };
}
