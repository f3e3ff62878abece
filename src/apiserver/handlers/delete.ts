import type { Namespace } from "../../api/core/namespace/schema.ts";
import type { ApiObject, SubresourceStrategy } from "../../api/kind.ts";
import { deleteOptions as deleteOptionsSchema, type DeleteOptions as SentOptions } from "../../api/meta/options.ts";
import { create } from "../../registry/create.ts";
import { type DeleteOptions, type DeleteResult, remove } from "../../registry/delete.ts";
import { deleteCollection } from "../../registry/delete-collection.ts";
import { deleteNamespace } from "../../registry/delete-namespace.ts";
import { patch } from "../../registry/patch.ts";
import type { DecodeFailure } from "../../registry/patches/decode-failure.ts";
import type { Registry } from "../../registry/registry.ts";
import { update } from "../../registry/update.ts";
import type { WriteOptions } from "../../registry/write/request.ts";
import type { RequestContext } from "../request/request-context.ts";
import { listResponse, writtenResponse } from "../responses/object-response.ts";
import { deletedResponse } from "../responses/status-response.ts";
import { createAdmission } from "./admission.ts";
import { createApplyHandler } from "./apply.ts";
import { readObjectBody, readOptionalBody } from "./body.ts";
import { fieldManagerOptions } from "./field-manager.ts";
import { decodePatched, patchTypeOf, readPatchBody } from "./patch-body.ts";
import { parseDeleteOptions, parseListQuery } from "./query.ts";
import { responseOptionsOf, expectedBodyOf, type ResourceHandler, scopeOf, type ResourceTarget } from "./target.ts";

export const createObject: ResourceHandler = async (target, context, params) => {
  const responseOptions = responseOptionsOf(target, context, "object");
  const { object: sent, dryRun, fieldManager } = await readObjectBody(context, expectedBodyOf(target), "CreateOptions");
  const warn = warningAppender(context);
  const options = { dryRun, warn, ...fieldManagerOptions(context, fieldManager), ...writeChecks(target, context, params, dryRun) };
  const object = await create(target.registry, scopeOf(target, context, params), sent, options);
  return writtenResponse(201, target.kind, object, responseOptions);
};

/** Who has a say in writes of the target's kind. */
export function writeChecks(
  target: ResourceTarget,
  context: RequestContext,
  params: Readonly<Record<string, string>>,
  dryRun: boolean,
): Pick<WriteOptions, "admission" | "checkEscalation"> {
  const { kind, settings } = target;
  return {
    admission: createAdmission(target, context, params, { dryRun }),
    checkEscalation: settings.escalationCheckFor(kind, params.name ?? ""),
  };
}

/** The same warning twice is sent once. */
export function warningAppender({ warnings }: RequestContext): (texts: readonly string[]) => void {
  return (texts) => {
    warnings.push(...texts);
  };
}

/** PUT of an object, or of a part of it. */
export function createUpdateHandler(part?: SubresourceStrategy): ResourceHandler {
  return async (target, context, params) => {
    const responseOptions = responseOptionsOf(target, context, "object");
    const { object: sent, dryRun, fieldManager } = await readObjectBody(context, expectedBodyOf(target), "UpdateOptions");
    const warn = warningAppender(context);
    const options: WriteOptions = {
      dryRun,
      subresourceStrategy: part,
      warn,
      authorizeCreate: () => target.settings.authorizeCreate(context),
      ...fieldManagerOptions(context, fieldManager),
      ...writeChecks(target, context, params, dryRun),
    };
    const result = await update(target.registry, scopeOf(target, context, params), params.name ?? "", sent, options);
    return writtenResponse(result.created ? 201 : 200, target.kind, result.object, responseOptions);
  };
}

export function createPatchHandler(part?: SubresourceStrategy): ResourceHandler {
  const apply = createApplyHandler(part);
  return async (target, context, params) => {
    const type = patchTypeOf(context.request.headers["content-type"], target.settings.cbor);
    if (type === "apply") return await apply(target, context, params);
    const responseOptions = responseOptionsOf(target, context, "object");
    const expected = expectedBodyOf(target);
    const sent = await readPatchBody(context, type);
    const { dryRun, fieldManager, fieldValidation } = sent;
    const warn = warningAppender(context);
    const before = context.warnings.length;
    const decode = (value: unknown, show: (why: string) => DecodeFailure): ApiObject => {
      // The patch may be tried again on a newer object: what the last try found is what counts.
      context.warnings.length = before;
      return decodePatched(sent, value, show, expected, fieldValidation, context.warnings);
    };
    const scope = scopeOf(target, context, params);
    const object = await patch(target.registry, scope, params.name ?? "", sent.patch, {
      dryRun,
      subresourceStrategy: part,
      decode,
      warn,
      ...fieldManagerOptions(context, fieldManager),
      ...writeChecks(target, context, params, dryRun),
    });
    return writtenResponse(200, target.kind, object, responseOptions);
  };
}

export const deleteObject: ResourceHandler = async (target, context, params) => {
  const responseOptions = responseOptionsOf(target, context, "object");
  const options = await readDeleteOptions(target, context, params);
  const name = params.name ?? "";
  const { object, deleted: isDeleted } = await removeObject(target, context, params, name, options);
  // Whoever says that dependents go too is told that this has not happened yet.
  const accepted = !isDeleted && options.orphanDependents === false;
  if (!isDeleted || target.kind.returnsDeletedObject === true)
    return writtenResponse(accepted ? 202 : 200, target.kind, object, responseOptions);
  const uid = object.metadata?.uid ?? "";
  const group = target.group === "" ? {} : { group: target.group };
  return deletedResponse({ name, ...group, kind: target.kind.plural, uid }, context);
};

async function removeObject(
  target: ResourceTarget,
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
  return await deleteNamespace(namespaces, scope, name, options);
}

export const deleteObjects: ResourceHandler = async (target, context, params) => {
  // Here a version says from when to list, not what an object must have.
  const query = new URLSearchParams(context.info.query);
  query.delete("resourceVersion");
  const responseOptions = responseOptionsOf(target, context, "list");
  const listed = parseListQuery(context.info.query);
  const options = await readDeleteOptions(target, context, params, query);
  const page = await deleteCollection(target.registry, scopeOf(target, context, params), listed, options);
  return listResponse(target.kind, page, responseOptions);
};

async function readDeleteOptions(
  target: ResourceTarget,
  context: RequestContext,
  params: Readonly<Record<string, string>>,
  query = context.info.query,
): Promise<DeleteOptions> {
  const expected = { group: "", version: "v1", kind: "DeleteOptions", schema: deleteOptionsSchema };
  const sent = await readOptionalBody<SentOptions>(context, expected);
  const options = parseDeleteOptions(query, sent);
  const { deletionWarning } = target.kind.strategy;
  if (deletionWarning !== undefined && options.propagationPolicy === undefined) context.warnings.push(deletionWarning);
  const { dryRun = false } = options;
  return {
    ...options,
    admission: createAdmission(target, context, params, { dryRun, options: effectiveOptions(sent, options) }),
  };
}

/** Those of the query are told as if they had been sent. */
function effectiveOptions(sent: SentOptions | undefined, { dryRun, ...options }: DeleteOptions): ApiObject {
  if (sent !== undefined) return sent as ApiObject;
  const { gracePeriodSeconds, propagationPolicy, orphanDependents } = options;
  return {
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(propagationPolicy === undefined || orphanDependents !== undefined ? {} : { propagationPolicy }),
    ...(orphanDependents === undefined ? {} : { orphanDependents }),
    ...(dryRun === true ? { dryRun: ["All"] } : {}),
  } as ApiObject;
}
