/** Checks the apiVersion and kind of a body against those of the path. */
import type { Kind } from "../../api/kind.ts";
import { splitApiVersion } from "../../api/meta/group-version.ts";
import { formatApiVersion, type Scheme, svcGroup } from "../../api/scheme.ts";
import { badRequest, invalid, type StatusError } from "../../api/status.ts";
import { decode } from "../../schema/decode/decode.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { invalidField, renderFieldError } from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";

/** The kind that the path expects. */
export interface ExpectedBody {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: ObjectSchema;
  /** Those of the kind's strategy, which follow those of the schema. */
  readonly setDefaults?: Kind["strategy"]["setDefaults"] | undefined;
  /** All kinds: the error for a known kind differs from that for an unknown one. */
  readonly scheme?: Scheme | undefined;
  /** The kind is a custom resource. */
  readonly custom?: boolean | undefined;
  /** Another accepted version with the same schema. */
  readonly olderVersion?: string;
  /** Called with the group alias of the body. */
  readonly onGroup?: ((group: string) => void) | undefined;
  /** Whether CBOR bodies are accepted. */
  readonly cbor?: boolean | undefined;
  /** Bytes of the longest body; `BODY_BYTES_MAX` when absent. */
  readonly bytesMax?: number | undefined;
}

export interface GroupVersionKind {
  readonly kind: string;
  readonly version: string;
  readonly group: string;
}

/** Parts of Kubernetes' error messages: servers with a scheme of their own serve two groups. */
const SCHEME_FILE = "pkg/api/legacyscheme/scheme.go:30";
const SCHEME_FILES: ReadonlyMap<string, string> = new Map([
  ["apiextensions.svc.io", "pkg/apiserver/apiserver.go:55"],
  ["apiregistration.svc.io", "pkg/apiserver/scheme/scheme.go:28"],
]);
const TYPE_META_STRUCT =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/**
 * The kind and version of the body, with those of `expected` as default; member names are case-insensitive. Throws a
 * `SyntaxError` with Go's message when they are invalid.
 */
export function groupVersionKindOf(value: unknown, expected: ExpectedBody): GroupVersionKind {
  const { kind, apiVersion } = readTypeMeta(value);
  const found = splitApiVersion(apiVersion);
  if (found === undefined) throw new SyntaxError(`unexpected GroupVersion string: ${apiVersion}`);
  const { group, version } = found;
  const isSameGroup = svcGroup(group) === svcGroup(expected.group);
  const named = version === "" && (group === "" || isSameGroup) ? expected : found;
  return { kind: kind === "" ? expected.kind : kind, group: named.group, version: named.version };
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

/** The Go name of a JSON value's type. */
export function goType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/**
 * A body may omit its kind, but not contradict that of the path. Throws a 400, or the error of custom resources.
 * `value` is the JSON value of the body.
 */
export function checkGroupVersionKind(found: GroupVersionKind, expected: ExpectedBody, value?: unknown): void {
  const sameGroup = svcGroup(found.group) === svcGroup(expected.group);
  const sameVersion = found.version === expected.version || found.version === expected.olderVersion;
  if (found.kind === expected.kind && sameGroup && sameVersion) {
    expected.onGroup?.(found.group);
    return;
  }
  if (expected.custom === true) throw otherCustomKind(found, expected, sameGroup && sameVersion);
  const known = goTypeOf(found, expected.scheme);
  if (known === undefined) {
    const file = SCHEME_FILES.get(svcGroup(expected.group)) ?? SCHEME_FILE;
    throw cannotHandle(found, expected, notRegistered(found, file));
  }
  // The body is decoded as its own kind before the kinds are compared.
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

/** Kinds of every group version, and kinds of the core group only. */
const OPTIONS = ["Create", "Delete", "Get", "List", "Patch", "Update"].map((verb) => `${verb}Options`);
const PER_GROUP_VERSION: ReadonlySet<string> = new Set([...OPTIONS, "WatchEvent"]);
const UNVERSIONED: ReadonlySet<string> = new Set([
  ...["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"],
]);

/** The Go type of a kind; undefined for unknown kinds. */
function goTypeOf({ group, version, kind }: GroupVersionKind, scheme: Scheme | undefined): string | undefined {
  if (group === "" && version === "v1" && UNVERSIONED.has(kind)) return `v1.${kind}`;
  const kinds = (scheme?.kinds() ?? []).filter(
    (one) => one.custom !== true && one.group === svcGroup(group) && one.version === version,
  );
  if (kinds.length === 0) return undefined;
  if (PER_GROUP_VERSION.has(kind)) return `v1.${kind}`;
  const isOfOtherGroup = (scheme?.kinds() ?? []).some((one) =>
    one.subresources.some((part) => {
      return (
        part.kind === kind && part.version === version && part.group !== undefined && part.group === svcGroup(group)
      );
    }),
  );
  return isOfOtherGroup || kinds.some((one) => hasKind(one, kind)) ? `${version}.${kind}` : undefined;
}

function hasKind(one: Kind, kind: string): boolean {
  const isSubresource = one.subresources.some((part) => part.group === undefined && part.kind === kind);
  return one.kind === kind || one.listKind === kind || isSubresource;
}

/** The internal Go type of a kind. Events of both groups have the same one. */
export function internalType(group: string, kind: string): string {
  if (PER_GROUP_VERSION.has(kind)) return `v1.${kind}`;
  if (kind === "Event" || kind === "EventList" || group === "") return `core.${kind}`;
  const [first = ""] = group.split(".");
  return `${first === "internal" ? "apiserverinternal" : first}.${kind}`;
}
