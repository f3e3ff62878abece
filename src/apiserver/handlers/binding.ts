import { type Binding, binding as bindingSchema } from "../../api/core/binding/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { badRequest } from "../../api/status.ts";
import type { Registry } from "../../registry/registry.ts";
import { bind } from "../../registry/subresources/binding.ts";
import { runMutatingAdmission } from "../../registry/write/admission.ts";
import { successResponse } from "../responses/status-response.ts";
import { createAdmission } from "./admission.ts";
import { readObjectBody } from "./body.ts";
import { UNSTORED_BYTES_MAX } from "./read-body.ts";
import { expectedBodyOf, type ResourceHandler, responseOptionsOf, scopeOf } from "./target.ts";
import { warningAppender } from "./write-options.ts";

const bindingBody = {
  group: "",
  version: "v1",
  kind: "Binding",
  schema: bindingSchema,
  bytesMax: UNSTORED_BYTES_MAX,
};

/** POST to `pods/NAME/binding`, and to `bindings`, with the name in the body. */
export function createBindingHandler(pods: Registry<Pod>): ResourceHandler {
  return async (target, context, params) => {
    const { mediaType } = responseOptionsOf(target, context, "review").representation;
    const { object: sent, dryRun } = await readObjectBody<Binding>(
      context,
      { ...expectedBodyOf(target), ...bindingBody },
      "CreateOptions",
    );
    const namespace = sent.metadata?.namespace ?? "";
    if (namespace !== "" && namespace !== params.namespace) {
      throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
    }
    const sentName = sent.metadata?.name ?? "";
    const name = params.name ?? sentName;
    if (name !== sentName) throw badRequest("name in URL does not match name in Binding object");
    if (name === "") throw badRequest("name must be provided");
    const admission = createAdmission(target, context, params, { dryRun, objectKind: bindingBody });
    const named = { ...sent, metadata: { ...sent.metadata, name, namespace: params.namespace ?? "" } };
    const admitted = await runMutatingAdmission(
      { options: { admission, warn: warningAppender(context) } },
      named,
      undefined,
    );
    await bind(pods, scopeOf(target, context, params), name, admitted, { dryRun, admission });
    return successResponse(201, context, mediaType);
  };
}
