/** Subresources that show an object as one of another kind: `deployments/web/scale`. */
import type { ApiObject, SubresourceView } from "../../api/kind.ts";
import { get } from "../../registry/get.ts";
import type { DecodeFailure } from "../../registry/patches/decode-failure.ts";
import { applyView, patchView, updateView } from "../../registry/subresources/view.ts";
import { writtenResponse } from "../responses/object-response.ts";
import { admissionOf, objectKindOf } from "./admission.ts";
import { readApply } from "./apply.ts";
import { readObject } from "./body.ts";
import { writerOf } from "./field-manager.ts";
import { decodePatched, patchType, readPatch } from "./patch-body.ts";
import { answeringOf, expectedOf, type ResourceHandler, scopeOf, type Target } from "./target.ts";
import { warningsTo } from "./write.ts";

/** The route as bodies and answers see it: of the kind shown. */
function shownBy(target: Target, { kind }: SubresourceView): Target {
  return { ...target, kind, group: kind.group };
}

export function getView(view: SubresourceView): ResourceHandler {
  return async (target, context, params) => {
    const answering = answeringOf(shownBy(target, view), context, "object");
    const version = context.info.query.get("resourceVersion") ?? undefined;
    const { object } = await get(target.registry, scopeOf(target, context, params), params.name ?? "", version);
    return writtenResponse(200, view.kind, view.toView(object), answering);
  };
}

export function updateViewed(view: SubresourceView): ResourceHandler {
  return async (target, context, params) => {
    const shown = shownBy(target, view);
    const answering = answeringOf(shown, context, "object");
    const { object: sent, dryRun, fieldManager } = await readObject(context, expectedOf(shown), "UpdateOptions");
    const admission = admissionOf(target, context, params, { dryRun, objectKind: objectKindOf(shown) });
    const options = { dryRun, view, admission, warn: warningsTo(context), ...writerOf(context, fieldManager) };
    const object = await updateView(
      target.registry,
      scopeOf(target, context, params),
      params.name ?? "",
      sent,
      options,
    );
    return writtenResponse(200, view.kind, object, answering);
  };
}

export function patchViewed(view: SubresourceView): ResourceHandler {
  return async (target, context, params) => {
    const type = patchType(context.request.headers["content-type"], target.settings.cbor);
    if (type === "apply") return await applyViewed(view)(target, context, params);
    const shown = shownBy(target, view);
    const answering = answeringOf(shown, context, "object");
    const sent = await readPatch(context, type);
    const { dryRun, fieldManager, fieldValidation } = sent;
    const decode = (value: unknown, show: (why: string) => DecodeFailure): ApiObject => {
      context.warnings.length = 0;
      return decodePatched(sent, value, show, expectedOf(shown), fieldValidation, context.warnings);
    };
    const admission = admissionOf(target, context, params, { dryRun, objectKind: objectKindOf(shown) });
    const writer = writerOf(context, fieldManager);
    const options = { dryRun, view, decode, admission, warn: warningsTo(context), ...writer };
    const scope = scopeOf(target, context, params);
    const object = await patchView(target.registry, scope, params.name ?? "", sent.patch, options);
    return writtenResponse(200, view.kind, object, answering);
  };
}

function applyViewed(view: SubresourceView): ResourceHandler {
  return async (target, context, params) => {
    const shown = shownBy(target, view);
    const answering = answeringOf(shown, context, "object");
    const { configuration, options } = await readApply(context);
    const scope = scopeOf(target, context, params);
    const { dryRun } = options;
    const admission = admissionOf(target, context, params, { dryRun, objectKind: objectKindOf(shown) });
    const all = { ...options, view, admission };
    const object = await applyView(target.registry, scope, params.name ?? "", configuration, all);
    return writtenResponse(200, view.kind, object, answering);
  };
}
