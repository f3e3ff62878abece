import type { Pod } from "../../api/core/pod/schema.ts";
import { type Eviction, eviction as evictionSchema } from "../../api/policy/eviction.ts";
import type { PodDisruptionBudget } from "../../api/policy/pod-disruption-budget/schema.ts";
import type { Registry } from "../../registry/registry.ts";
import { evict } from "../../registry/subresources/eviction.ts";
import { runMutatingAdmission } from "../../registry/write/admission.ts";
import { successResponse } from "../responses/status-response.ts";
import { createAdmission } from "./admission.ts";
import { readObjectBody } from "./body.ts";
import { parseDeleteOptions } from "./query.ts";
import { UNSTORED_BYTES_MAX } from "./read-body.ts";
import { expectedBodyOf, type ResourceHandler, responseOptionsOf, scopeOf } from "./target.ts";
import { warningAppender } from "./write-options.ts";

/** POST to `pods/NAME/eviction`. The body may be of policy/v1beta1, which has the same fields. */
export function createEvictionHandler(pods: Registry<Pod>, budgets: Registry<PodDisruptionBudget>): ResourceHandler {
  const kind = { group: "policy", version: "v1", olderVersion: "v1beta1", kind: "Eviction", schema: evictionSchema };
  const body = { ...kind, bytesMax: UNSTORED_BYTES_MAX };
  return async (target, context, params) => {
    const { mediaType } = responseOptionsOf(target, context, "review").representation;
    const { object, dryRun } = await readObjectBody<Eviction>(
      context,
      { ...expectedBodyOf(target), ...body },
      "CreateOptions",
    );
    const admission = createAdmission(target, context, params, { dryRun, objectKind: body });
    const sent = await runMutatingAdmission(
      { options: { admission, warn: warningAppender(context) } },
      object,
      undefined,
    );
    const { preconditions, gracePeriodSeconds, propagationPolicy } = parseDeleteOptions(
      new URLSearchParams(),
      sent.deleteOptions,
      false,
    );
    const dry = dryRun || (sent.deleteOptions?.dryRun ?? []).length > 0;
    const options = {
      dryRun: dry,
      gracePeriodSeconds,
      propagationPolicy,
      admission,
      ...(preconditions ? { preconditions } : {}),
    };
    await evict(pods, budgets, scopeOf(target, context, params), params.name ?? "", sent, options);
    return successResponse(201, context, mediaType);
  };
}
