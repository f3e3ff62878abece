import type { SubresourceStrategy } from "../../api/kind.ts";
import { update } from "../../registry/update.ts";
import type { WriteOptions } from "../../registry/write/request.ts";
import { addEvent } from "../../tracing/span.ts";
import { writtenResponse } from "../responses/object-response.ts";
import { readObjectBody } from "./body.ts";
import { fieldManagerOptions } from "./field-manager.ts";
import { expectedBodyOf, type ResourceHandler, responseOptionsOf, scopeOf } from "./target.ts";
import { warningAppender, writeChecks } from "./write-options.ts";

/** PUT of an object, or of a subresource that is a part of it. */
export function createUpdateHandler(part?: SubresourceStrategy): ResourceHandler {
  return async (target, context, params) => {
    const responseOptions = responseOptionsOf(target, context, "object");
    const {
      object: sent,
      dryRun,
      fieldManager,
    } = await readObjectBody(context, expectedBodyOf(target), "UpdateOptions");
    const warn = warningAppender(context);
    const options: WriteOptions = {
      dryRun,
      subresourceStrategy: part,
      warn,
      authorizeCreate: () => target.settings.authorizeCreate(context),
      ...fieldManagerOptions(context, fieldManager),
      ...writeChecks(target, context, params, dryRun),
    };
    addEvent("About to store object in database");
    const result = await update(target.registry, scopeOf(target, context, params), params.name ?? "", sent, options);
    addEvent("Object stored in database");
    return writtenResponse(result.created ? 201 : 200, target.kind, result.object, responseOptions);
  };
}
