import type { ApiObject } from "../../api/kind.ts";
import { invalid } from "../../api/status.ts";
import { updateManagedFields } from "../../registry/managed-fields/track-managed-fields.ts";
import { runMutatingAdmission, runValidatingAdmission } from "../../registry/write/admission.ts";
import { applyDefaults } from "../../registry/write/apply-defaults.ts";
import { setNamespace } from "../../registry/write/name-and-namespace.ts";
import { dedupOwnerReferences } from "../../registry/write/owner-references.ts";
import { clearSystemMetadata } from "../../registry/write/system-metadata.ts";
import { renderFieldError } from "../../schema/validation/field-error.ts";
import type { RequestContext } from "../request/request-context.ts";
import { writtenResponse } from "../responses/object-response.ts";
import { createAdmission } from "./admission.ts";
import { readObjectBody } from "./body.ts";
import { fieldManagerOptions } from "./field-manager.ts";
import { UNSTORED_BYTES_MAX } from "./read-body.ts";
import { expectedBodyOf, type ResourceHandler, responseOptionsOf, scopeOf } from "./target.ts";
import { warningAppender } from "./write-options.ts";

/** Returns the review with its `status`. Throws a `StatusError` for invalid reviews. */
export type ReviewHandler = (context: RequestContext, question: ApiObject) => Promise<ApiObject>;

/** POST of a review, which is not stored. */
export function createReviewHandler(review: ReviewHandler): ResourceHandler {
  return async (target, context, params) => {
    const responseOptions = responseOptionsOf(target, context, "review");
    const {
      object: sent,
      dryRun,
      fieldManager,
    } = await readObjectBody(context, { ...expectedBodyOf(target), bytesMax: UNSTORED_BYTES_MAX }, "CreateOptions");
    const scope = scopeOf(target, context, params);
    const admission = createAdmission(target, context, params, { dryRun });
    const options = { admission, warn: warningAppender(context), ...fieldManagerOptions(context, fieldManager) };
    const request = { registry: target.registry, scope, name: "", options };
    const desired = dedupOwnerReferences(
      request,
      applyDefaults(request, setNamespace(request, clearSystemMetadata(sent))),
    );
    const tracked = updateManagedFields(request, desired, undefined);
    const admitted = await runMutatingAdmission(request, tracked, undefined);
    const errors = target.kind.strategy.validate?.(admitted) ?? [];
    // Kubernetes' error has neither the name nor the kind of the review.
    if (errors.length > 0) throw invalid({ group: target.group, resource: "", name: "" }, errors, renderFieldError);
    await runValidatingAdmission(request, admitted, undefined);
    return writtenResponse(201, target.kind, await review(context, admitted), responseOptions);
  };
}
