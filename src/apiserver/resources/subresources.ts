import { type Binding, binding as bindingSchema } from "../../api/core/binding.ts";
import type { Pod } from "../../api/core/pod.ts";
import { badRequest } from "../../api/status.ts";
import { bind } from "../../registry/binding.ts";
import type { Registry } from "../../registry/registry.ts";
import { named } from "../../registry/update.ts";
import { statusResponse, success } from "../status-response.ts";
import { readObject } from "./body.ts";
import { writeQuery } from "./query.ts";
import { type ResourceHandler, scopeOf } from "./target.ts";

const bindingBody = { group: "", version: "v1", kind: "Binding", schema: bindingSchema };

/** POST to `pods/NAME/binding`, and to `bindings`, where the name stands in the body. */
export const bindPod: ResourceHandler = async (target, context, params) => {
  const { dryRun, fieldValidation } = writeQuery("CreateOptions", context.info.query);
  const sent = await readObject<Binding>(context, bindingBody, fieldValidation);
  const name = params.name ?? sent.metadata?.name ?? "";
  if (name === "") throw badRequest("name must be provided");
  const binding = sent.metadata?.name ? named(sent, name) : sent;
  const namespace = binding.metadata?.namespace ?? "";
  if (namespace !== "" && namespace !== params.namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const pods = target.registry as unknown as Registry<Pod>;
  await bind(pods, scopeOf(target, context, params), name, binding, { dryRun });
  return statusResponse(success(201), context);
};
