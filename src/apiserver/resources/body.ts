/** Request bodies: media type, decoding, and what is said about fields nobody knows. */
import type { ApiObject } from "../../api/kind.ts";
import { formatApiVersion, parseApiVersion, svcGroup } from "../../api/scheme.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import { readBody } from "../../http/body.ts";
import { parseMediaType } from "../../http/negotiate.ts";
import { decode } from "../../schema/decode.ts";
import { decodeEnvelope } from "../../schema/envelope.ts";
import { parseJson } from "../../schema/json.ts";
import { decodeProtobuf } from "../../schema/protobuf.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { parseYaml } from "../../schema/yaml.ts";
import type { RequestContext } from "../context.ts";
import type { FieldValidation } from "./query.ts";

/** As in Kubernetes: more does not fit into the store. */
export const BODY_BYTES_MAX = 3 * 2 ** 20;
/** Findings that one answer lists. */
const FINDINGS_MAX = 100;
const OPENING_BRACE = 0x7b;
const BODY_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/** What a body is to be: the kind the path asks for. */
export interface Expected {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: ObjectSchema;
  /** The version named in the body does not matter. */
  readonly anyVersion?: boolean;
  /** A version whose bodies are read as this one's. */
  readonly olderVersion?: string;
}

interface Parsed {
  readonly value: unknown;
  readonly duplicates: readonly string[];
}

/** The object in the body, without kind and apiVersion. Throws 400 or 415. */
export async function readObject<T extends ApiObject>(
  context: RequestContext,
  expected: Expected,
  validation: FieldValidation,
): Promise<T> {
  const bytes = await readBody(context.request, BODY_BYTES_MAX);
  const type = bodyType(context);
  if (type === "protobuf") return fromProtobuf<T>(bytes, expected);
  const parsed = parse(bytes, type, expected);
  checkIdentity(parsed.value, expected);
  return decodeObject<T>(parsed, expected, validation, context.warnings);
}

/** Options, which name any API version: that of the resource, of meta, or none. Undefined for an empty body. */
export async function readOptional<T extends ApiObject>(
  context: RequestContext,
  expected: Expected,
): Promise<T | undefined> {
  const bytes = await readBody(context.request, BODY_BYTES_MAX);
  if (bytes.length === 0) return undefined;
  const type = bodyType(context);
  if (type === "protobuf") return fromProtobuf<T>(bytes, { ...expected, anyVersion: true });
  const parsed = parse(bytes, type, expected);
  checkIdentity(parsed.value, { ...expected, anyVersion: true });
  return decodeObject<T>(parsed, expected, "Ignore", context.warnings);
}

function bodyType(context: RequestContext): "json" | "yaml" | "protobuf" {
  const header = context.request.headers["content-type"];
  switch (header === undefined || header === "" ? "application/json" : parseMediaType(header)?.type) {
    case "application/json":
      return "json";
    case "application/yaml":
      return "yaml";
    case "application/vnd.kubernetes.protobuf":
    case "application/vnd.svc.protobuf":
      return "protobuf";
    default:
      throw unsupportedBody(BODY_TYPES);
  }
}

export function unsupportedBody(accepted: string): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted}`;
  return new StatusError(415, "UnsupportedMediaType", message);
}

function parse(bytes: Buffer, type: "json" | "yaml", expected: Expected): Parsed {
  try {
    if (type === "json") return parseJson(bytes);
    // Further documents are not looked at, as in Kubernetes.
    const [document] = parseYaml(bytes.toString("utf8"));
    return { value: document?.value, duplicates: document?.duplicates ?? [] };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const why = type === "yaml" ? error.message : `couldn't get version/kind; json parse error: ${goSyntax(error)}`;
    throw badRequest(
      `the object provided is unrecognized (must be of type ${expected.kind}): ${why} (${excerpt(bytes)})`,
    );
  }
}

/** Go says what is wrong but not where. */
export function goSyntax(error: SyntaxError): string {
  return error.message.replace(/ \(line \d+, column \d+\)$/, "");
}

/** The start of a body, as error messages quote it: as text where it looks like JSON, else in hex. */
function excerpt(bytes: Buffer): string {
  if (bytes.length === 0) return "<empty>";
  const start = bytes.subarray(0, 30).toString(bytes[0] === OPENING_BRACE ? "utf8" : "hex");
  return bytes.length > 30 ? `${start} ...` : start;
}

/** A body may leave its identity to the path, but not contradict it. */
export function checkIdentity(value: unknown, expected: Expected): void {
  const { kind, apiVersion } = (value ?? {}) as { readonly kind?: unknown; readonly apiVersion?: unknown };
  const version = formatApiVersion(expected.group, expected.version);
  if (typeof kind === "string" && kind !== "" && kind !== expected.kind) {
    const found = typeof apiVersion === "string" && apiVersion !== "" ? apiVersion : version;
    throw badRequest(
      `${kind} in version ${JSON.stringify(found)} cannot be handled as a ${expected.kind}: it is of another kind`,
    );
  }
  if (expected.anyVersion === true || typeof apiVersion !== "string" || apiVersion === "") return;
  const named = parseApiVersion(apiVersion);
  if (named !== undefined && svcGroup(named.group) === svcGroup(expected.group)) {
    if (named.version === expected.version || named.version === expected.olderVersion) return;
  }
  const what = `${expected.kind} in version ${JSON.stringify(named?.version ?? apiVersion)}`;
  const why = `no kind ${JSON.stringify(expected.kind)} is registered for version ${JSON.stringify(apiVersion)}`;
  throw badRequest(`${what} cannot be handled as a ${expected.kind}: ${why}`);
}

export function decodeObject<T>(
  parsed: Parsed,
  expected: Expected,
  validation: FieldValidation,
  warnings: string[],
): T {
  const what = `${expected.kind} in version ${JSON.stringify(expected.version)} cannot be handled as a ${expected.kind}`;
  const unknownFields = validation === "Ignore" ? "drop" : "report";
  const { value, unknown, errors } = decode(expected.schema, parsed.value ?? {}, { unknownFields });
  const error = errors[0];
  if (error !== undefined) throw badRequest(`${what}: ${error.message}`);
  if (validation !== "Ignore") {
    const findings = [
      ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
      ...parsed.duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`),
    ].slice(0, FINDINGS_MAX);
    if (findings.length > 0 && validation === "Strict") {
      throw badRequest(`${what}: strict decoding error: ${findings.join(", ")}`);
    }
    warnings.push(...findings);
  }
  return resetting(parsed.value, withoutIdentity(value as ApiObject)) as T;
}

/** An empty list of managers is not the same as none: it asks that they be forgotten. */
function resetting(sent: unknown, object: ApiObject): ApiObject {
  const { metadata } = (sent ?? {}) as { readonly metadata?: { readonly managedFields?: unknown } | null };
  const managers = metadata?.managedFields;
  if (!Array.isArray(managers) || managers.length > 0) return object;
  return { ...object, metadata: { ...object.metadata, managedFields: [] } };
}

function fromProtobuf<T extends ApiObject>(bytes: Buffer, expected: Expected): T {
  const unrecognized = (why: string): StatusError =>
    badRequest(`the object provided is unrecognized (must be of type ${expected.kind}): ${why}`);
  if (bytes.length === 0) throw unrecognized("empty data (<empty>)");
  try {
    const envelope = decodeEnvelope(bytes);
    checkIdentity(envelope, expected);
    return withoutIdentity(decodeProtobuf(expected.schema, envelope.raw) as ApiObject) as T;
  } catch (error) {
    if (error instanceof StatusError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw unrecognized(`${why} (${excerpt(bytes)})`);
  }
}

function withoutIdentity(object: ApiObject): ApiObject {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object;
  return rest;
}
