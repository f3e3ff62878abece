import type { ApiObject } from "../../api/kind.ts";
import { deleteOptions as deleteOptionsSchema, type DeleteOptions as SentOptions } from "../../api/meta/options.ts";
import type { HttpResponse } from "../../http/message.ts";
import { type DeleteOptions, type DeleteResult, remove } from "../../registry/delete.ts";
import { deleteCollection } from "../../registry/delete-collection.ts";
import { removeUnreadable } from "../../registry/delete-unreadable.ts";
import type { Scope } from "../../registry/scope.ts";
import { addEvent } from "../../tracing/span.ts";
import { type RequestContext, withoutEnd } from "../request/request-context.ts";
import { listResponse, writtenResponse } from "../responses/object-response.ts";
import { deletedResponse, statusResponse, successStatus } from "../responses/status-response.ts";
import { createAdmission } from "./admission.ts";
import { readOptionalBody } from "./body.ts";
import { parseDeleteOptions, parseListQuery, requireReadable } from "./query.ts";
import { UNSTORED_BYTES_MAX } from "./read-body.ts";
import { type ResourceHandler, type ResourceTarget, responseOptionsOf, scopeOf } from "./target.ts";

/** Deletes one object of the target: `remove` of the registry for most kinds. */
export type DeleteFunction = (
  target: ResourceTarget,
  scope: Scope,
  name: string,
  options: DeleteOptions,
) => Promise<DeleteResult<ApiObject>>;

const removeObject: DeleteFunction = ({ registry }, scope, name, options) => remove(registry, scope, name, options);

/** DELETE of an object. */
export function createDeleteHandler(deleteFunction = removeObject): ResourceHandler {
  return async (target, context, params) => {
    const responseOptions = responseOptionsOf(target, context, "object");
    const { mediaType } = responseOptions.representation;
    const options = await readDeleteOptions(target, context, params);
    const name = params.name ?? "";
    if (options.ignoresReadError === true) return await deleteUnreadable(target, context, params, options);
    addEvent("About to delete object from database");
    const { object, deleted } = await deleteFunction(target, scopeOf(target, context, params), name, options);
    addEvent("Object deleted from database");
    // With orphanDependents=false, 202 means that dependents are not deleted yet.
    const accepted = !deleted && options.orphanDependents === false;
    if (!deleted || target.kind.returnsDeletedObject === true)
      return writtenResponse(accepted ? 202 : 200, target.kind, object, responseOptions);
    const uid = object.metadata?.uid ?? "";
    const group = target.group === "" ? {} : { group: target.group };
    return deletedResponse({ name, ...group, kind: target.kind.plural, uid }, context, mediaType);
  };
}

async function deleteUnreadable(
  target: ResourceTarget,
  context: RequestContext,
  params: Readonly<Record<string, string>>,
  options: DeleteOptions,
): Promise<HttpResponse> {
  const { name = "" } = params;
  context.annotations.add("apiserver.k8s.io/unsafe-delete-ignore-read-error", "");
  await target.settings.authorizeUnsafeDelete(context);
  await removeUnreadable(target.registry, scopeOf(target, context, params), name, options);
  const { code, ...status } = successStatus(200);
  return statusResponse({ ...status, details: { name, kind: target.kind.kind }, code }, context);
}

/** DELETE of a collection. */
export const deleteObjects: ResourceHandler = async (target, context, params) => {
  const responseOptions = responseOptionsOf(target, context, "deletion");
  const listed = parseListQuery(context.info.query);
  // Goes on when the client disconnects or the deadline passes, rather than end half-way.
  const lasting = withoutEnd(context);
  const options = await readDeleteOptions(target, lasting, params);
  requireReadable(options);
  addEvent("About to delete items from database");
  const page = await deleteCollection(target.registry, scopeOf(target, lasting, params), listed, options);
  addEvent("Items deleted from database", { count: page.items.length });
  return listResponse(target.kind, page, responseOptions);
};

async function readDeleteOptions(
  target: ResourceTarget,
  context: RequestContext,
  params: Readonly<Record<string, string>>,
): Promise<DeleteOptions> {
  const bytesMax = UNSTORED_BYTES_MAX;
  const expected = { group: "", version: "v1", kind: "DeleteOptions", schema: deleteOptionsSchema, bytesMax };
  const sent = await readOptionalBody<SentOptions>(context, expected);
  const allowsUnreadable = target.registry.features.has("AllowUnsafeMalformedObjectDeletion");
  const options = parseDeleteOptions(context.info.query, sent, allowsUnreadable);
  const { deletionWarning } = target.kind.strategy;
  if (deletionWarning !== undefined && options.propagationPolicy === undefined) context.warnings.push(deletionWarning);
  const { dryRun = false } = options;
  return {
    ...options,
    admission: createAdmission(target, context, params, { dryRun, options: effectiveOptions(sent, options) }),
  };
}

/** The options for admission: those of the body, or those of the query as an object. */
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
