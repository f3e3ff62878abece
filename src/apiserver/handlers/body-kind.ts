/** Checks the apiVersion and kind of a body against those of the path. */
import {
  type GroupVersionKind,
  goTypeOf,
  internalType,
  notRegistered,
  schemeFileOf,
} from "../../api/group-version-kind.ts";
import type { Kind } from "../../api/kind.ts";
import { formatApiVersion, type Scheme, svcGroup } from "../../api/scheme.ts";
import { badRequest, invalid, type StatusError } from "../../api/status.ts";
import { decode } from "../../schema/decode/decode.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { invalidField, renderFieldError } from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";

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
    throw cannotHandle(found, expected, notRegistered(found, schemeFileOf(expected.group)));
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
