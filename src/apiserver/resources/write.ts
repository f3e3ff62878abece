import type { Operation } from "rfc6902";
import type { Namespace } from "../../api/core/namespace.ts";
import { answersDeleted } from "../../api/deleted-answer.ts";
import type { ApiObject, Part } from "../../api/kind.ts";
import { deleteOptions as deleteOptionsSchema, type DeleteOptions as SentOptions } from "../../api/meta/options.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import { readBody } from "../../http/body.ts";
import { parseMediaType } from "../../http/negotiate.ts";
import { create } from "../../registry/create.ts";
import { type DeleteOptions, type DeleteResult, remove } from "../../registry/delete.ts";
import { removeCollection } from "../../registry/delete-collection.ts";
import { removeNamespace } from "../../registry/namespaces.ts";
import { type Patch, patch } from "../../registry/patch.ts";
import type { Registry } from "../../registry/registry.ts";
import { update } from "../../registry/update.ts";
import { parseJson } from "../../schema/json.ts";
import type { RequestContext } from "../context.ts";
import { deletedResponse } from "../status-response.ts";
import { APPLY_TYPE, applyObject } from "./apply.ts";
import { BODY_BYTES_MAX, decodePatched, goSyntax, readObject, readOptional } from "./body.ts";
import { writerOf } from "./field-manager.ts";
import { deleteOptions, listQuery, writeQuery } from "./query.ts";
import { listResponse, writtenResponse } from "./respond.ts";
import { answeringOf, expectedOf, type ResourceHandler, scopeOf, type Target } from "./target.ts";

export const createObject: ResourceHandler = async (target, context, params) => {
  const { dryRun, fieldManager, fieldValidation } = writeQuery("CreateOptions", context.info.query);
  const answering = answeringOf(target, context, "object");
  const sent = await readObject(context, expectedOf(target), fieldValidation);
  const warn = warningsTo(context);
  const options = { dryRun, warn, ...writerOf(context, fieldManager), ...admissionOf(target) };
  const object = await create(target.registry, scopeOf(target, context, params), sent, options);
  return writtenResponse(201, target.kind, object, answering);
};

/** What has a say in writes of the target's kind. */
function admissionOf({ kind, settings }: Target) {
  return { admit: settings.admit(kind), confirm: settings.confirm(kind) };
}

/** The same warning twice is sent once. */
export function warningsTo({ warnings }: RequestContext): (texts: readonly string[]) => void {
  return (texts) => {
    warnings.push(...texts);
  };
}

/** PUT of an object, or of a part of it. */
export function updateObject(part?: Part): ResourceHandler {
  return async (target, context, params) => {
    const { dryRun, fieldManager, fieldValidation } = writeQuery("UpdateOptions", context.info.query);
    const answering = answeringOf(target, context, "object");
    const sent = await readObject(context, expectedOf(target), fieldValidation);
    const warn = warningsTo(context);
    const mayCreate = () => target.settings.mayCreate(context);
    const options = { dryRun, part, warn, mayCreate, ...writerOf(context, fieldManager), ...admissionOf(target) };
    const result = await update(target.registry, scopeOf(target, context, params), params.name ?? "", sent, options);
    return writtenResponse(result.created ? 201 : 200, target.kind, result.object, answering);
  };
}

export function patchObject(part?: Part): ResourceHandler {
  const apply = applyObject(part);
  return async (target, context, params) => {
    const type = patchType(context.request.headers["content-type"]);
    if (type === "apply") return await apply(target, context, params);
    const { dryRun, fieldManager, fieldValidation } = writeQuery("PatchOptions", context.info.query);
    const answering = answeringOf(target, context, "object");
    const expected = expectedOf(target);
    const sent = await readPatch(context, type);
    const warn = warningsTo(context);
    const before = context.warnings.length;
    const decode = (value: unknown): ApiObject => {
      // The patch may be tried again on a newer object: what the last try found is what counts.
      context.warnings.length = before;
      return decodePatched(value, sent.duplicates, expected, fieldValidation, context.warnings);
    };
    const scope = scopeOf(target, context, params);
    const object = await patch(target.registry, scope, params.name ?? "", sent.patch, {
      dryRun,
      part,
      decode,
      warn,
      ...writerOf(context, fieldManager),
      ...admissionOf(target),
    });
    return writtenResponse(200, target.kind, object, answering);
  };
}

const PATCH_TYPES = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
} as const;

interface SentPatch {
  readonly patch: Patch;
  /** Paths that the patch names more than once. */
  readonly duplicates: readonly string[];
}

export async function readPatch(context: RequestContext, type: Patch["type"]): Promise<SentPatch> {
  const bytes = await readBody(context.request, BODY_BYTES_MAX);
  let parsed: ReturnType<typeof parseJson>;
  try {
    parsed = parseJson(bytes);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw badRequest(type === "strategic" ? goSyntax(error) : `error decoding patch: ${goSyntax(error)}`);
  }
  const { value, duplicates } = parsed;
  if (type === "json") return { patch: { type, operations: operationsOf(value) }, duplicates: [] };
  if (value === null) throw badRequest("Invalid JSON Patch");
  if (typeof value !== "object" || Array.isArray(value)) {
    const where = type === "strategic" ? "" : "error decoding patch: ";
    throw badRequest(`${where}json: cannot unmarshal ${goType(value)} into Go value of type map[string]interface {}`);
  }
  return { patch: { type, value }, duplicates };
}

export function patchType(header = ""): Patch["type"] | "apply" {
  const type = parseMediaType(header)?.type ?? "";
  if (Object.hasOwn(PATCH_TYPES, type)) return PATCH_TYPES[type as keyof typeof PATCH_TYPES];
  if (type === APPLY_TYPE) return "apply";
  throw new StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", { details: {} });
}

function operationsOf(value: unknown): readonly Operation[] {
  const wrong = (found: unknown, wanted: string): never => {
    throw badRequest(`error decoding patch: json: cannot unmarshal ${goType(found)} into Go value of type ${wanted}`);
  };
  if (value === null) return [];
  if (!Array.isArray(value)) return wrong(value, "[]handlers.jsonPatchOp");
  for (const item of value) {
    if (typeof item !== "object" || item === null || Array.isArray(item)) wrong(item, "handlers.jsonPatchOp");
    const { op, path, from = "" } = item as { readonly [name: string]: unknown };
    if (typeof op !== "string" || typeof path !== "string" || typeof from !== "string") {
      const message = "the server rejected our request due to an error in our request";
      throw new StatusError(422, "Invalid", message, { details: {} });
    }
  }
  return value as readonly Operation[];
}

function goType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

export const deleteObject: ResourceHandler = async (target, context, params) => {
  const options = await readDeleteOptions(target, context);
  const answering = answeringOf(target, context, "object");
  const name = params.name ?? "";
  const { object, gone } = await removeOne(target, context, params, name, options);
  // Whoever says that dependents go too is told that this has not happened yet.
  const accepted = !gone && options.orphanDependents === false;
  if (!gone || answersDeleted(target.kind))
    return writtenResponse(accepted ? 202 : 200, target.kind, object, answering);
  const uid = object.metadata?.uid ?? "";
  const group = target.group === "" ? {} : { group: target.group };
  return deletedResponse({ name, ...group, kind: target.kind.plural, uid }, context);
};

async function removeOne(
  target: Target,
  context: RequestContext,
  params: Readonly<Record<string, string>>,
  name: string,
  options: DeleteOptions,
): Promise<DeleteResult<ApiObject>> {
  const scope = scopeOf(target, context, params);
  if (target.kind.kind !== "Namespace" || target.kind.group !== "") {
    return await remove(target.registry, scope, name, options);
  }
  const namespaces = target.registry as unknown as Registry<Namespace>;
  return await removeNamespace(namespaces, scope, name, options);
}

export const deleteObjects: ResourceHandler = async (target, context, params) => {
  // Here a version says from when to list, not what an object must have.
  const query = new URLSearchParams(context.info.query);
  query.delete("resourceVersion");
  const options = await readDeleteOptions(target, context, query);
  const answering = answeringOf(target, context, "list");
  const scope = scopeOf(target, context, params);
  const page = await removeCollection(target.registry, scope, listQuery(context.info.query), options);
  return listResponse(target.kind, page, answering);
};

async function readDeleteOptions(
  { kind }: Target,
  context: RequestContext,
  query = context.info.query,
): Promise<DeleteOptions> {
  const expected = { group: "", version: "v1", kind: "DeleteOptions", schema: deleteOptionsSchema };
  const sent = await readOptional<SentOptions>(context, expected);
  const options = deleteOptions(query, sent);
  const { deletionWarning } = kind.strategy;
  if (deletionWarning !== undefined && options.propagationPolicy === undefined) context.warnings.push(deletionWarning);
  return options;
}
