/** Server-side apply: PATCH with `application/apply-patch+yaml`, a configuration in YAML or JSON. */
import type { SubresourceStrategy } from "../../api/kind.ts";
import { badRequest } from "../../api/status.ts";
import { apply } from "../../registry/apply.ts";
import type { ApplyOptions, Configuration } from "../../registry/managed-fields/apply-configuration.ts";
import { decodeCbor } from "../../schema/cbor/decode.ts";
import { CborError } from "../../schema/cbor/error.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { parseJsonInSteps } from "../../schema/json/parse.ts";
import { checkRootMembers } from "../../schema/value/check-values.ts";
import { valuesMax } from "../../schema/value/limits.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { describeDuplicateKeys, parseYamlBody } from "../../schema/yaml/yaml.ts";
import { runInSlices } from "../../std/async/steps.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import type { RequestContext } from "../request/request-context.ts";
import { writtenResponse } from "../responses/object-response.ts";
import { createAdmission } from "./admission.ts";
import { fieldManagerOptions } from "./field-manager.ts";
import { type FieldValidation, parseApplyQuery } from "./query.ts";
import { readLimitedBody } from "./read-body.ts";
import { type ResourceHandler, responseOptionsOf, scopeOf } from "./target.ts";

export const APPLY_TYPE = "application/apply-patch+yaml";
export const APPLY_CBOR_TYPE = "application/apply-patch+cbor";

export function createApplyHandler(part?: SubresourceStrategy): ResourceHandler {
  return async (target, context, params) => {
    const { kind, settings } = target;
    const responseOptions = responseOptionsOf(target, context, "object");
    const sent = await readApplyBody(context);
    if (kind.schema.unstructured === true) checkRootMembers(sent.configuration);
    const admission = createAdmission(target, context, params, sent.options);
    const options: ApplyOptions = {
      ...sent.options,
      admission,
      checkEscalation: settings.escalationCheckFor(kind, params.name ?? ""),
      subresourceStrategy: part,
      authorizeCreate: () => settings.authorizeCreate(context),
    };
    const scope = scopeOf(target, context, params);
    const { object, created } = await apply(target.registry, scope, params.name ?? "", sent.configuration, options);
    return writtenResponse(created ? 201 : 200, kind, object, responseOptions);
  };
}

interface ApplyBody {
  readonly configuration: Configuration;
  readonly options: ApplyOptions & { readonly dryRun: boolean };
}

/** Reads the configuration and the options of an apply. */
export async function readApplyBody(context: RequestContext): Promise<ApplyBody> {
  const bytes = await readLimitedBody(context);
  const { dryRun, force, fieldManager, fieldValidation } = parseApplyQuery(context.info.query);
  const isCbor = context.request.headers["content-type"]?.startsWith(APPLY_CBOR_TYPE) === true;
  const slice = new TimeSlice();
  const { value, duplicates } = isCbor ? parseCborConfiguration(bytes) : await parseConfiguration(bytes, slice);
  context.audit?.setRequestBody(() => stringifyExact(value));
  await slice.yield();
  const warn = (texts: readonly string[]): void => {
    for (const text of texts) context.warnings.push(text);
  };
  const onMerged = (): void => reportDuplicates(duplicates, fieldValidation, context);
  const options = { dryRun, force, warn, ...fieldManagerOptions(context, fieldManager), fieldManager, onMerged };
  return { configuration: value, options };
}

interface ParsedConfiguration {
  readonly value: Configuration;
  /** Messages about duplicate keys. */
  readonly duplicates: readonly string[];
}

const OPENING_BRACE = 0x7b;

function parseCborConfiguration(bytes: Buffer): ParsedConfiguration {
  let value: unknown;
  try {
    value = decodeCbor(bytes, valuesMax);
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    throw badRequest(`error decoding CBOR: ${error.message}`);
  }
  if (!isPlainObject(value)) throw badRequest("error decoding CBOR: it holds no map");
  return { value, duplicates: [] };
}

async function parseConfiguration(bytes: Buffer, slice: TimeSlice): Promise<ParsedConfiguration> {
  if (bytes[0] === OPENING_BRACE) {
    try {
      const { value, duplicates } = await runInSlices(parseJsonInSteps(bytes, valuesMax), slice);
      if (duplicates.length === 0) return { value: toConfiguration(value), duplicates };
    } catch (error) {
      // Invalid JSON may still be valid YAML.
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  try {
    const document = await parseYamlBody(bytes.toString("utf8"), valuesMax, slice);
    return { value: toConfiguration(document?.value), duplicates: describeDuplicateKeys(document) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw badRequest(`error decoding YAML: error converting YAML to JSON: ${error.message}`);
  }
}

function toConfiguration(value: unknown): Configuration {
  if (value === undefined || value === null) return {};
  if (isPlainObject(value)) return value;
  const type = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
  const why = `json: cannot unmarshal ${type} into Go value of type map[string]interface {}`;
  throw badRequest(`error decoding YAML: error unmarshaling JSON: while decoding JSON: ${why}`);
}

function reportDuplicates(duplicates: readonly string[], validation: FieldValidation, context: RequestContext): void {
  if (duplicates.length === 0 || validation === "Ignore") return;
  if (validation === "Strict") {
    const lines = duplicates.map((text) => `\n  ${text}`).join("");
    throw badRequest(`error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:${lines}`);
  }
  context.warnings.push(...duplicates);
}
