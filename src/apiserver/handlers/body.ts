/** Reads request bodies: media type, decoding and field validation. */
import { isUtf8 } from "node:buffer";
import { type GroupVersionKind, groupVersionKindOf, notRegistered } from "../../api/group-version-kind.ts";
import type { ApiObject } from "../../api/kind.ts";
import { dropManagedFields } from "../../api/meta/managed-fields.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import { parseMediaType } from "../../http/negotiate.ts";
import { decodeCbor } from "../../schema/cbor/decode.ts";
import { CborError } from "../../schema/cbor/error.ts";
import { decode } from "../../schema/decode/decode.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import { stringify } from "../../schema/json/encode.ts";
import { type ParsedJson, parseJsonInSteps } from "../../schema/json/parse.ts";
import { mergeRepeatedMembers } from "../../schema/json/repeated-members.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { decodeEnvelope } from "../../schema/protobuf/envelope.ts";
import { checkRootMembers } from "../../schema/value/check-values.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { valuesMax } from "../../schema/value/limits.ts";
import { describeDuplicateKeys, parseYamlBody } from "../../schema/yaml/yaml.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { runInSlices } from "../../std/async/steps.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { addEvent } from "../../tracing/span.ts";
import type { RequestContext } from "../request/request-context.ts";
import { cannotHandle, checkGroupVersionKind, type ExpectedBody } from "./body-kind.ts";
import { type FieldValidation, parseWriteQuery, type WriteQuery } from "./query.ts";
import { readLimitedBody } from "./read-body.ts";

const OPENING_BRACE = 0x7b;
/** Bytes of a body that an error message quotes. */
const EXCERPT_BYTES = 30;
const BODY_TYPES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

type BodyType = "json" | "yaml" | "protobuf" | "cbor";

interface RawBody {
  readonly type: BodyType;
  readonly bytes: Buffer;
}

/** The value of a body before decoding by a schema. */
interface ParsedBody {
  readonly value: unknown;
  readonly duplicates: readonly string[];
  readonly scan?: ParsedJson["scan"];
  readonly literals?: ParsedJson["literals"];
  /** A strategic merge patch gave the value. */
  readonly converter?: boolean;
  /** Messages about duplicate keys of YAML. */
  readonly yamlDuplicates?: readonly string[];
}

export interface ObjectBody<T> extends WriteQuery {
  /** Without kind and apiVersion. */
  readonly object: T;
}

/**
 * Reads the object and the options of a write. The order of checks is Kubernetes', which differs between create and
 * update. Throws 400, 413, 415 or 422.
 */
export async function readObjectBody<T extends ApiObject>(
  context: RequestContext,
  expected: ExpectedBody,
  options: "CreateOptions" | "UpdateOptions",
): Promise<ObjectBody<T>> {
  const { request, info, warnings } = context;
  const bodyTypeOf = (): BodyType => bodyType(request.headers["content-type"], expected.cbor === true);
  if (options === "CreateOptions") bodyTypeOf();
  const bytes = await readLimitedBody(context, expected.bytesMax);
  const query = parseWriteQuery(options, info.query);
  addEvent("About to convert to expected version");
  const object = await decodeBody<T>({ type: bodyTypeOf(), bytes }, expected, query.fieldValidation, warnings);
  addEvent("Conversion done");
  const { audit } = context;
  audit?.setRequestObject(object.metadata, () =>
    encodeRequestObject(expected, audit.decision.omitManagedFields ? dropManagedFields(object) : object),
  );
  return { ...query, object };
}

/** The object as the audit log shows it: with defaults, before anything else changes it. */
function encodeRequestObject(expected: ExpectedBody, object: ApiObject): string {
  const { kind, group, version, schema, setDefaults, custom } = expected;
  const sent = custom === true ? { ...object, metadata: { creationTimestamp: null, ...object.metadata } } : object;
  const defaulted = applyDefaults(schema, sent as ApiObject);
  const typeMeta = { kind, apiVersion: formatApiVersion(group, version) };
  return stringify(schema, { ...typeMeta, ...(setDefaults?.(defaulted) ?? defaulted) });
}

/** Throws a 400, or a 413 for too many values. */
async function decodeBody<T extends ApiObject>(
  { type, bytes }: RawBody,
  expected: ExpectedBody,
  validation: FieldValidation,
  warnings: string[],
): Promise<T> {
  const slice = new TimeSlice();
  const throwUnrecognized = (error: unknown): never => {
    const why = decodeErrorMessage(error);
    throw badRequest(
      `the object provided is unrecognized (must be of type ${expected.kind}): ${why} (${excerpt(bytes)})`,
    );
  };
  const tryParse = <R>(parseStep: () => MaybePromise<R>): MaybePromise<R> => {
    try {
      const result = parseStep();
      return result instanceof Promise ? result.catch(throwUnrecognized) : result;
    } catch (error) {
      return throwUnrecognized(error);
    }
  };
  if (type === "protobuf") {
    const envelope = await tryParse(() => decodeBodyEnvelope(bytes));
    const identity = await tryParse(() =>
      groupVersionKindOf({ kind: envelope.kind, apiVersion: envelope.apiVersion }, expected),
    );
    checkGroupVersionKind(identity, expected);
    const object = decodeProtobufBody<T>(envelope.raw, identity, expected);
    await slice.yield();
    return object;
  }
  // Custom resources accept each spelling of a number.
  const literals = expected.schema.unstructured !== true;
  const parsed = await tryParse(() => parseBody(bytes, type, slice, literals));
  if (slice.isOver) await slice.end();
  if (expected.schema.unstructured === true) checkRootMembers(parsed.value);
  const identity = await tryParse(() => groupVersionKindOf(parsed.value, expected));
  checkGroupVersionKind(identity, expected, parsed.value);
  const object = decodeObject<T>(parsed, expected, validation, warnings, identity);
  if (slice.isOver) await slice.end();
  return object;
}

/**
 * Reads DeleteOptions, of any API version; undefined for an empty body. Throws a 415, and a 500 for an invalid body, as
 * Kubernetes does.
 */
export async function readOptionalBody<T extends ApiObject>(
  context: RequestContext,
  expected: ExpectedBody,
): Promise<T | undefined> {
  // An empty body needs no media type.
  const bytes = await readLimitedBody(context, expected.bytesMax);
  if (bytes.length === 0) return undefined;
  const type = bodyType(context.request.headers["content-type"], expected.cbor === true);
  try {
    const envelope = type === "protobuf" ? decodeBodyEnvelope(bytes) : undefined;
    const parsed = type === "protobuf" ? undefined : await parseBody(bytes, type, new TimeSlice(), true);
    const identity = groupVersionKindOf(envelope ?? parsed?.value, expected);
    if (identity.kind !== expected.kind) throw new SyntaxError(notRegistered(identity, OPTIONS_SCHEME));
    const options =
      envelope === undefined
        ? decodeOptions<T>(parsed, expected)
        : decodeProtobufBody<T>(envelope.raw, identity, expected);
    context.audit?.setRequestBody(() =>
      // Kubernetes records the options in their internal version.
      stringify(expected.schema, { kind: expected.kind, apiVersion: "meta.k8s.io/__internal", ...options }),
    );
    return options;
  } catch (error) {
    throw new StatusError(500, "", decodeErrorMessage(error), { cause: error });
  }
}

/** Part of Kubernetes' error message. */
const OPTIONS_SCHEME = "pkg/apis/meta/internalversion/scheme/register.go:27";

function decodeOptions<T>(parsed: ParsedBody | undefined, expected: ExpectedBody): T {
  const { scan, literals } = parsed ?? {};
  const merged = mergeRepeatedMembers(expected.schema, scan === undefined ? parsed?.value : scan.value);
  const { value: decoded, errors } = decode(expected.schema, merged ?? {}, { unknownFields: "drop", literals });
  if (errors[0] !== undefined) throw new SyntaxError(errors[0].message);
  return withoutTypeMeta(decoded as ApiObject) as T;
}

/** Throws a 400 when a patched value has an unexpected kind. */
export function checkPatchedType(value: unknown, expected: ExpectedBody): void {
  const own = { kind: expected.kind, group: expected.group, version: expected.version };
  let identity: GroupVersionKind;
  try {
    identity = groupVersionKindOf(value, expected);
  } catch (error) {
    throw cannotHandle(own, expected, decodeErrorMessage(error));
  }
  checkGroupVersionKind(identity, expected, value);
}

function bodyType(header: string | undefined, cbor: boolean): BodyType {
  switch (header === undefined || header === "" ? "application/json" : parseMediaType(header)?.type) {
    case "application/json":
      return "json";
    case "application/yaml":
      return "yaml";
    case "application/vnd.kubernetes.protobuf":
    case "application/vnd.svc.protobuf":
      return "protobuf";
    case "application/cbor":
      if (cbor) return "cbor";
      throw unsupportedBody(BODY_TYPES);
    default:
      throw unsupportedBody(cbor ? [...BODY_TYPES, "application/cbor"] : BODY_TYPES);
  }
}

export function unsupportedBody(accepted: readonly string[]): StatusError {
  const types = accepted.join(", ");
  const message = `the body of the request was in an unknown format - accepted media types include: ${types}`;
  return new StatusError(415, "UnsupportedMediaType", message);
}

async function parseBody(
  bytes: Buffer,
  type: Exclude<BodyType, "protobuf">,
  slice: TimeSlice,
  literals: boolean,
): Promise<ParsedBody> {
  switch (type) {
    case "cbor":
      return { value: decodeCbor(bytes, valuesMax), duplicates: [] };
    case "yaml": {
      if (!isUtf8(bytes)) throw new SyntaxError("yaml: invalid leading UTF-8 octet");
      const document = await parseYamlBody(bytes.toString("utf8"), valuesMax, slice);
      return { value: document?.value, duplicates: [], yamlDuplicates: describeDuplicateKeys(document) };
    }
    case "json":
      try {
        return await runInSlices(parseJsonInSteps(bytes, valuesMax, { literals }), slice);
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        throw new SyntaxError(`couldn't get version/kind; json parse error: ${withoutPosition(error)}`, {
          cause: error,
        });
      }
    default:
      return type satisfies never;
  }
}

function decodeErrorMessage(error: unknown): string {
  if (error instanceof SyntaxError || error instanceof CborError || error instanceof StatusError) return error.message;
  if (error instanceof Error && error.name === "ProtobufError") return error.message;
  throw error;
}

/** Go's messages have no position. */
export function withoutPosition(error: SyntaxError): string {
  return error.message.replace(/ \(line \d+, column \d+\)$/, "");
}

/** The start of a body for error messages: text when it looks like JSON, otherwise hexadecimal. */
function excerpt(bytes: Buffer): string {
  if (bytes.length === 0) return "<empty>";
  const start = bytes.subarray(0, EXCERPT_BYTES).toString(bytes[0] === OPENING_BRACE ? "utf8" : "hex");
  return bytes.length > EXCERPT_BYTES ? `${start} ...` : start;
}

export function decodeObject<T>(
  parsed: ParsedBody,
  expected: ExpectedBody,
  validation: FieldValidation,
  warnings: string[],
  identity: GroupVersionKind = expected,
): T {
  const merged = parsed.scan === undefined ? parsed.value : mergeRepeatedMembers(expected.schema, parsed.scan.value);
  const unknownFields = validation === "Ignore" ? "drop" : "report";
  const { literals, converter } = parsed;
  const { value, unknown, errors } = decode(expected.schema, merged ?? {}, { unknownFields, literals, converter });
  const error = errors[0];
  if (error !== undefined) throw cannotHandle(identity, expected, error.message);
  if (validation !== "Ignore") {
    const { yamlDuplicates = [] } = parsed;
    const findings = fieldValidationFindings(parsed, unknown);
    if (validation === "Strict" && (findings.length > 0 || yamlDuplicates.length > 0)) {
      const lines = yamlDuplicates.map((line) => `\n  ${line}`).join("");
      const all = yamlDuplicates.length === 0 ? findings : [`yaml: unmarshal errors:${lines}`, ...findings];
      throw cannotHandle(identity, expected, `strict decoding error: ${all.join(", ")}`);
    }
    warnings.push(...yamlDuplicates, ...findings);
  }
  return keepEmptyManagedFields(merged, withoutTypeMeta(value as ApiObject)) as T;
}

/** Messages about unknown and duplicate fields, in the order of the body. */
function fieldValidationFindings({ duplicates, scan }: ParsedBody, unknown: readonly string[]): readonly string[] {
  const unknownText = (path: string): string => `unknown field ${goQuote(path)}`;
  const duplicateText = (path: string): string => `duplicate field ${goQuote(path)}`;
  if (scan === undefined) return [...new Set([...duplicates.map(duplicateText), ...unknown.map(unknownText)])];
  const unknownPaths = new Set(unknown);
  const findings = [
    ...unknown.map((path) => ({ text: unknownText(path), index: scan.memberIndexes.get(path) ?? 0 })),
    ...scan.duplicates
      // Duplicates within unknown fields are not reported.
      .filter(({ path }) => !isWithin(path, unknownPaths))
      .map(({ path, index }) => ({ text: duplicateText(path), index })),
  ];
  return [...new Set(findings.sort((a, b) => a.index - b.index).map(({ text }) => text))];
}

function isWithin(path: string, members: ReadonlySet<string>): boolean {
  for (let end = path.length; end > 0; end--) {
    const isEnd = end === path.length || path[end] === "." || path[end] === "[";
    if (isEnd && members.has(path.slice(0, end))) return true;
  }
  return false;
}

/** Preserves an empty list of managedFields, which resets them. */
function keepEmptyManagedFields(sent: unknown, object: ApiObject): ApiObject {
  const { metadata } = (sent ?? {}) as { readonly metadata?: { readonly managedFields?: unknown } | null };
  const managers = metadata?.managedFields;
  if (!Array.isArray(managers) || managers.length > 0) return object;
  return { ...object, metadata: { ...object.metadata, managedFields: [] } };
}

function decodeBodyEnvelope(bytes: Buffer): ReturnType<typeof decodeEnvelope> {
  if (bytes.length === 0) throw new SyntaxError("empty data");
  const envelope = decodeEnvelope(bytes);
  if (bytes.length === 4) throw new SyntaxError("empty body");
  return envelope;
}

function decodeProtobufBody<T>(raw: Uint8Array, identity: GroupVersionKind, expected: ExpectedBody): T {
  try {
    return withoutTypeMeta(decodeProtobuf(expected.schema, raw, { valuesMax, exactIntegers: true }) as ApiObject) as T;
  } catch (error) {
    throw cannotHandle(identity, expected, decodeErrorMessage(error));
  }
}

function withoutTypeMeta(object: ApiObject): ApiObject {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object;
  return rest;
}
