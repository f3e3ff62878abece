import type { Namespace } from "../../api/core/namespace.ts";
import type { ApiObject } from "../../api/kind.ts";
import { deleteOptions as deleteOptionsSchema, type DeleteOptions as SentOptions } from "../../api/meta/options.ts";
import { badRequest } from "../../api/status.ts";
import { readBody } from "../../http/body.ts";
import { parseMediaType } from "../../http/negotiate.ts";
import { create } from "../../registry/create.ts";
import { type DeleteOptions, type DeleteResult, remove } from "../../registry/delete.ts";
import { removeCollection } from "../../registry/delete-collection.ts";
import { removeNamespace } from "../../registry/namespaces.ts";
import { type Patch, patch } from "../../registry/patch.ts";
import type { Registry } from "../../registry/registry.ts";
import { update } from "../../registry/update.ts";
import type { Part } from "../../registry/write.ts";
import { parseJson } from "../../schema/json.ts";
import type { RequestContext } from "../context.ts";
import { statusResponse, success } from "../status-response.ts";
import { BODY_BYTES_MAX, decodeValue, readObject, readOptional, unsupportedBody } from "./body.ts";
import { deleteOptions, listQuery, writeQuery } from "./query.ts";
import { listResponse, writtenResponse } from "./respond.ts";
import { answeringOf, expectedOf, type ResourceHandler, scopeOf, type Target } from "./target.ts";

export const createObject: ResourceHandler = async (target, context, params) => {
  const { dryRun, fieldValidation } = writeQuery("CreateOptions", context.info.query);
  const answering = answeringOf(target, context, "object");
  const sent = await readObject(context, expectedOf(target), fieldValidation);
  const options = { dryRun, admit: target.settings.admit(target.kind) };
  const object = await create(target.registry, scopeOf(target, context, params), sent, options);
  return writtenResponse(201, target.kind, object, answering);
};

/** PUT of an object, or of its status alone. */
export function updateObject(part: Part): ResourceHandler {
  return async (target, context, params) => {
    const { dryRun, fieldValidation } = writeQuery("UpdateOptions", context.info.query);
    const answering = answeringOf(target, context, "object");
    const sent = await readObject(context, expectedOf(target), fieldValidation);
    const options = { dryRun, part, admit: target.settings.admit(target.kind) };
    const result = await update(target.registry, scopeOf(target, context, params), params.name ?? "", sent, options);
    return writtenResponse(result.created ? 201 : 200, target.kind, result.object, answering);
  };
}

export function patchObject(part: Part): ResourceHandler {
  return async (target, context, params) => {
    const { dryRun, fieldValidation } = writeQuery("PatchOptions", context.info.query);
    const answering = answeringOf(target, context, "object");
    const expected = expectedOf(target);
    const sent = await readPatch(context);
    const decode = (value: unknown): ApiObject => {
      // The patch may be tried again on a newer object: what the last try found is what counts.
      context.warnings.length = 0;
      return decodeValue(value, expected, fieldValidation, context.warnings);
    };
    const scope = scopeOf(target, context, params);
    const object = await patch(target.registry, scope, params.name ?? "", sent, { dryRun, part, decode });
    return writtenResponse(200, target.kind, object, answering);
  };
}

const PATCH_TYPES = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json";

async function readPatch(context: RequestContext): Promise<Patch> {
  const type = parseMediaType(context.request.headers["content-type"] ?? "")?.type;
  const types = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
  } as const;
  const chosen = Object.hasOwn(types, type ?? "") ? types[type as keyof typeof types] : undefined;
  if (chosen === undefined) throw unsupportedBody(PATCH_TYPES);
  const bytes = await readBody(context.request, BODY_BYTES_MAX);
  let value: unknown;
  try {
    value = parseJson(bytes).value;
  } catch (error) {
    if (error instanceof SyntaxError) throw badRequest(`error decoding patch: ${error.message}`);
    throw error;
  }
  if (chosen !== "json") return { type: chosen, value };
  if (!Array.isArray(value) || !value.every(isOperation))
    throw badRequest("error decoding patch: it must be a list of operations");
  return { type: "json", operations: value };
}

function isOperation(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { op, path } = value as { readonly op?: unknown; readonly path?: unknown };
  return typeof op === "string" && typeof path === "string";
}

export const deleteObject: ResourceHandler = async (target, context, params) => {
  const options = await readDeleteOptions(context);
  const answering = answeringOf(target, context, "object");
  const name = params.name ?? "";
  const { object, gone } = await removeOne(target, context, params, name, options);
  if (!gone || isPod(target)) return writtenResponse(200, target.kind, object, answering);
  const uid = object.metadata?.uid ?? "";
  const group = target.group === "" ? {} : { group: target.group };
  const status = success(200, { name, ...group, kind: target.kind.plural, uid });
  return statusResponse(status, context.request.headers.accept);
};

/** Kubernetes answers the delete of a pod with the pod, whether it is gone or not. */
function isPod({ kind }: Target): boolean {
  return kind.group === "" && kind.kind === "Pod";
}

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
  const options = await readDeleteOptions(context);
  const answering = answeringOf(target, context, "list");
  const scope = scopeOf(target, context, params);
  const page = await removeCollection(target.registry, scope, listQuery(context.info.query), options);
  return listResponse(target.kind, page, answering);
};

async function readDeleteOptions(context: RequestContext): Promise<DeleteOptions> {
  const expected = { group: "", version: "v1", kind: "DeleteOptions", schema: deleteOptionsSchema };
  const sent = await readOptional<SentOptions>(context, expected);
  return deleteOptions(context.info.query, sent);
}
