/** What a body says that it is, against what its path asks for. */
import type { Kind } from "../../api/kind.ts";
import { formatApiVersion, parseApiVersion, type Scheme, svcGroup } from "../../api/scheme.ts";
import { badRequest, invalid, type StatusError } from "../../api/status.ts";
import { decode } from "../../schema/decode/decode.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { invalidField, renderFieldError } from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";

/** What a body is to be: the kind the path asks for. */
export interface ExpectedBody {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: ObjectSchema;
  /** The other kinds there are: a body of one of them is told apart from one of a kind that nobody knows. */
  readonly scheme?: Scheme | undefined;
  /** The kind is a custom resource's. */
  readonly custom?: boolean | undefined;
  /** A version whose bodies are read as this one's. */
  readonly olderVersion?: string;
  /** Told how the body spells its group. */
  readonly onGroup?: ((group: string) => void) | undefined;
  /** CBOR is spoken. */
  readonly cbor?: boolean | undefined;
}

export interface GroupVersionKind {
  readonly kind: string;
  readonly version: string;
  readonly group: string;
}

/** Where Kubernetes keeps its kinds; clients read it in its messages. */
const SCHEME_FILE = "pkg/api/legacyscheme/scheme.go:30";
const TYPE_META_STRUCT =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/**
 * Kind and version as the body names them, names in any case; what it leaves out is `expected`. Throws a `SyntaxError`
 * in Go's words when they are no texts, or where they could not be.
 */
export function groupVersionKindOf(value: unknown, expected: ExpectedBody): GroupVersionKind {
  const { kind, apiVersion } = readTypeMeta(value);
  const named = parseApiVersion(apiVersion);
  if (apiVersion !== "" && named === undefined) {
    const why = `unexpected GroupVersion string: ${apiVersion}`;
    throw new SyntaxError(`couldn't get version/kind; json parse error: ${why}`);
  }
  const { group, version } = named ?? expected;
  return { kind: kind === "" ? expected.kind : kind, group, version };
}

function readTypeMeta(value: unknown): { readonly kind: string; readonly apiVersion: string } {
  const found = { kind: "", apiVersion: "" };
  const throwWrongType = (what: unknown, where: string): never => {
    throw new SyntaxError(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${goType(what)} into Go ${where}`,
    );
  };
  if (value === null || value === undefined) return found;
  if (!isPlainObject(value)) return throwWrongType(value, `value of type ${TYPE_META_STRUCT}`);
  for (const name of Object.keys(value)) {
    const lower = name.toLowerCase();
    const member = lower === "kind" ? "kind" : lower === "apiversion" ? "apiVersion" : undefined;
    const text = value[name];
    if (member === undefined || text === null) continue;
    if (typeof text !== "string") return throwWrongType(text, `struct field .${member} of type string`);
    found[member] = text;
  }
  return found;
}

/** What Go calls the type of a JSON value. */
export function goType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/**
 * A body may leave its identity to the path, but not contradict it. Throws a 400, or what custom resources are told.
 * `value` is what the body holds as JSON.
 */
export function checkGroupVersionKind(found: GroupVersionKind, expected: ExpectedBody, value?: unknown): void {
  const sameGroup = svcGroup(found.group) === svcGroup(expected.group);
  const sameVersion = found.version === expected.version || found.version === expected.olderVersion;
  if (found.kind === expected.kind && sameGroup && sameVersion) {
    expected.onGroup?.(found.group);
    return;
  }
  if (expected.custom === true) throw otherCustomKind(found, expected, sameGroup && sameVersion);
  const known = typeOf(found, expected.scheme);
  if (known === undefined) throw cannotHandle(found, expected, notRegistered(found, SCHEME_FILE));
  // It is read as what it says it is before anybody asks what it should be.
  const schema = expected.scheme?.byKind(found.group, found.version, found.kind)?.schema;
  const unreadable =
    schema === undefined ? undefined : decode(schema, value ?? {}, { unknownFields: "drop" }).errors[0];
  if (unreadable !== undefined) throw cannotHandle(found, expected, unreadable.message);
  const wanted = internalType(expected.group, expected.kind);
  if (internalType(found.group, found.kind) === wanted) throw otherVersion(found, expected);
  throw cannotHandle(found, expected, `converting (${known}) to (${wanted}): unknown conversion`);
}

export function notRegistered({ kind, group, version }: GroupVersionKind, scheme: string): string {
  const named = goQuote(formatApiVersion(group, version));
  return `no kind ${goQuote(kind)} is registered for version ${named} in scheme ${goQuote(scheme)}`;
}

export function cannotHandle({ kind, version }: GroupVersionKind, expected: ExpectedBody, why: string): StatusError {
  return badRequest(`${kind} in version ${goQuote(version)} cannot be handled as a ${expected.kind}: ${why}`);
}

function otherVersion(found: GroupVersionKind, { group, version }: ExpectedBody): StatusError {
  const [sent, wanted] = [formatApiVersion(found.group, found.version), formatApiVersion(group, version)];
  return badRequest(`the API version in the data (${sent}) does not match the expected API version (${wanted})`);
}

function otherCustomKind(found: GroupVersionKind, expected: ExpectedBody, sameVersion: boolean): StatusError {
  if (!sameVersion) return otherVersion(found, expected);
  const error = invalidField("kind", found.kind, `must be ${expected.kind}`);
  return invalid({ group: expected.group, resource: expected.kind, name: "" }, [error], renderFieldError);
}

/** Kinds that every group version has, or core alone: options, and answers. */
const OPTIONS = ["Create", "Delete", "Get", "List", "Patch", "Update"].map((verb) => `${verb}Options`);
const EVERYWHERE: ReadonlySet<string> = new Set([...OPTIONS, "WatchEvent"]);
const UNVERSIONED: ReadonlySet<string> = new Set([
  ...["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"],
]);

/** What Go calls the type of a kind; undefined for kinds that nobody knows. */
function typeOf({ group, version, kind }: GroupVersionKind, scheme: Scheme | undefined): string | undefined {
  if (group === "" && version === "v1" && UNVERSIONED.has(kind)) return `v1.${kind}`;
  const kinds = (scheme?.kinds() ?? []).filter(
    (one) => one.custom !== true && one.group === svcGroup(group) && one.version === version,
  );
  if (kinds.length === 0) return undefined;
  if (EVERYWHERE.has(kind)) return `v1.${kind}`;
  return kinds.some((one) => goesBy(one, kind)) ? `${version}.${kind}` : undefined;
}

function goesBy(one: Kind, kind: string): boolean {
  return one.kind === kind || one.listKind === kind || one.subresources.some((part) => part.kind === kind);
}

/** What Go calls the one type that all versions of a kind are read into. Events have one in both of their groups. */
export function internalType(group: string, kind: string): string {
  if (EVERYWHERE.has(kind)) return `v1.${kind}`;
  if (kind === "Event" || kind === "EventList" || group === "") return `core.${kind}`;
  const [first = ""] = group.split(".");
  return `${first === "internal" ? "apiserverinternal" : first}.${kind}`;
}
