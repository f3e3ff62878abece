import type { ApiObject, SubresourceStrategy } from "../../api/kind.ts";
import { patch } from "../../registry/patch.ts";
import type { DecodeFailure } from "../../registry/patches/decode-failure.ts";
import { addEvent } from "../../tracing/span.ts";
import { writtenResponse } from "../responses/object-response.ts";
import { createApplyHandler } from "./apply.ts";
import { fieldManagerOptions } from "./field-manager.ts";
import { decodePatched, patchTypeOf, readPatchBody } from "./patch-body.ts";
import { expectedBodyOf, type ResourceHandler, responseOptionsOf, scopeOf } from "./target.ts";
import { warningAppender, writeChecks } from "./write-options.ts";

/** PATCH of an object, or of a subresource that is a part of it. */
export function createPatchHandler(part?: SubresourceStrategy): ResourceHandler {
  const apply = createApplyHandler(part);
  return async (target, context, params) => {
    const type = patchTypeOf(context.request, target.settings.cbor);
    if (type === "apply") return await apply(target, context, params);
    const responseOptions = responseOptionsOf(target, context, "object");
    const expected = expectedBodyOf(target);
    const sent = await readPatchBody(context, type, expected);
    const { dryRun, fieldManager, fieldValidation } = sent;
    const warn = warningAppender(context);
    const before = context.warnings.length;
    const decode = (value: unknown, show: (why: string) => DecodeFailure): ApiObject => {
      // After a conflict the patch is applied to the newer object: only the warnings of the last attempt count.
      context.warnings.length = before;
      return decodePatched(sent, value, show, expected, fieldValidation, context.warnings);
    };
    const scope = scopeOf(target, context, params);
    addEvent("About to apply patch");
    const object = await patch(target.registry, scope, params.name ?? "", sent.patch, {
      dryRun,
      subresourceStrategy: part,
      decode,
      warn,
      ...fieldManagerOptions(context, fieldManager),
      ...writeChecks(target, context, params, dryRun),
    });
    addEvent("Object stored in database");
    return writtenResponse(200, target.kind, object, responseOptions);
  };
}
