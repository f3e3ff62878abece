/** The file of `--authorization-policy-file`: a policy in JSON on each line, in either of Kubernetes' two forms. */
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import { AUTHENTICATED } from "../../user.ts";

/** A line, in one form: empty members match nothing, `*` everything. */
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
  /** What an operator should know of; the file is used all the same. */
  readonly warnings: readonly string[];
}

const VERSIONS: ReadonlySet<string> = new Set([
  "abac.authorization.kubernetes.io/v1beta1",
  "abac.authorization.svc.io/v1beta1",
]);

type Members = Readonly<Record<string, unknown>>;

const TEXTS = ["user", "group", "apiGroup", "resource", "namespace", "nonResourcePath"] as const;
const KNOWN: ReadonlySet<string> = new Set([...TEXTS, "readonly"]);
/** What version 0, lines that name no version, can say. */
const KNOWN_V0: ReadonlySet<string> = new Set(["user", "group", "readonly", "resource", "namespace"]);

/** Empty lines and those that begin with `#` say nothing. Throws, naming file and line, for one that makes no sense. */
export function parseAbacFile(path: string, text: string): AbacFile {
  const warnings: string[] = [];
  const unversioned: number[] = [];
  const policies = text.split("\n").flatMap((row, index) => {
    const line = index + 1;
    const content = row.trim();
    if (content === "" || content.startsWith("#")) return [];
    const { policy, version, unknown } = read(path, line, content);
    if (version === 0) unversioned.push(line);
    for (const name of unknown) {
      warnings.push(`${path}:${line}: the policy has no member ${JSON.stringify(name)}; it is not heeded`);
    }
    return [policy];
  });
  if (unversioned.length > 0) {
    const lines = unversioned.slice(0, 10).join(", ");
    warnings.push(
      `${path} has policies without a version (lines ${lines}): they hold for every API group, and for everything ` +
        `that they do not name; give them apiVersion ${[...VERSIONS][0]} and kind Policy`,
    );
  }
  return { policies, warnings };
}

interface Read {
  readonly policy: AbacPolicy;
  readonly version: 0 | 1;
  readonly unknown: readonly string[];
}

function read(path: string, line: number, content: string): Read {
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
    const { spec, problem } = readMembers(rest);
    if (problem !== undefined) return fail(problem);
    return { policy: fromV0(spec), version: 0, unknown: unknownOf(rest, KNOWN_V0) };
  }
  if (typeof apiVersion !== "string" || !VERSIONS.has(apiVersion) || kind !== "Policy") {
    return fail(`no kind ${JSON.stringify(kind ?? "")} is known in version ${JSON.stringify(apiVersion ?? "")}`);
  }
  const { spec = {}, ...beside } = rest;
  if (!isPlainObject(spec)) return fail("spec: expected an object");
  const members = readMembers(spec as Members);
  if (members.problem !== undefined) return fail(`spec.${members.problem}`);
  const unknown = [...unknownOf(spec as Members, KNOWN).map((name) => `spec.${name}`), ...Object.keys(beside)];
  return { policy: forEverybody(members.spec), version: 1, unknown };
}

function unknownOf(members: Members, known: ReadonlySet<string>): readonly string[] {
  return Object.keys(members).filter((name) => !known.has(name));
}

function readMembers(members: Members): { readonly spec: AbacPolicy; readonly problem?: string } {
  const found: Record<string, string> = {};
  const { readonly = false } = members;
  let problem = typeof readonly === "boolean" ? undefined : "readonly: expected true or false";
  for (const name of TEXTS) {
    const value = members[name] ?? "";
    if (typeof value === "string") found[name] = value;
    else problem ??= `${name}: expected text`;
  }
  const spec = { ...(found as Record<(typeof TEXTS)[number], string>), readonly: readonly === true };
  return problem === undefined ? { spec } : { spec, problem };
}

/** In version 0, what is not named is not limited. */
function fromV0(said: AbacPolicy): AbacPolicy {
  const everybody = said.user === "" && said.group === "";
  return forEverybody({
    ...said,
    group: everybody ? AUTHENTICATED : said.group,
    apiGroup: "*",
    namespace: said.namespace === "" ? "*" : said.namespace,
    resource: said.resource === "" ? "*" : said.resource,
    nonResourcePath: said.namespace === "" && said.resource === "" ? "*" : "",
  });
}

/** `*` never meant those whom nobody knows. */
function forEverybody(policy: AbacPolicy): AbacPolicy {
  if (policy.user !== "*" && policy.group !== "*") return policy;
  return { ...policy, user: "", group: AUTHENTICATED };
}
