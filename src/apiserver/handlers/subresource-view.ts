/** Subresources that represent an object as another kind: `deployments/web/scale`. */
import type { ApiObject, SubresourceView } from "../../api/kind.ts";
import { get } from "../../registry/get.ts";
import type { DecodeFailure } from "../../registry/patches/decode-failure.ts";
import { applyView, patchView, updateView } from "../../registry/subresources/view.ts";
import { writtenResponse } from "../responses/object-response.ts";
import { createAdmission, objectKindOf } from "./admission.ts";
import { readApplyBody } from "./apply.ts";
import { readObjectBody } from "./body.ts";
import { fieldManagerOptions } from "./field-manager.ts";
import { decodePatched, patchTypeOf, readPatchBody } from "./patch-body.ts";
import { expectedBodyOf, type ResourceHandler, type ResourceTarget, responseOptionsOf, scopeOf } from "./target.ts";
import { warningAppender } from "./write-options.ts";

/** The target with the kind of the view, for bodies and responses. */
function viewTarget(target: ResourceTarget, { kind }: SubresourceView): ResourceTarget {
  return { ...target, kind, group: kind.group };
}

export function createGetViewHandler(view: SubresourceView): ResourceHandler {
  return async (target, context, params) => {
    const responseOptions = responseOptionsOf(viewTarget(target, view), context, "object");
    const version = context.info.query.get("resourceVersion") ?? undefined;
    const { object } = await get(target.registry, scopeOf(target, context, params), params.name ?? "", version);
    return writtenResponse(200, view.kind, view.toView(object), responseOptions);
  };
}

export function createUpdateViewHandler(view: SubresourceView): ResourceHandler {
  return async (target, context, params) => {
    const shown = viewTarget(target, view);
    const responseOptions = responseOptionsOf(shown, context, "object");
    const {
      object: sent,
      dryRun,
      fieldManager,
    } = await readObjectBody(context, expectedBodyOf(shown), "UpdateOptions");
    const admission = createAdmission(target, context, params, { dryRun, objectKind: objectKindOf(shown) });
    const options = {
      dryRun,
      view,
      admission,
      warn: warningAppender(context),
      ...fieldManagerOptions(context, fieldManager),
    };
    const object = await updateView(
      target.registry,
      scopeOf(target, context, params),
      params.name ?? "",
      sent,
      options,
    );
    return writtenResponse(200, view.kind, object, responseOptions);
  };
}

export function createPatchViewHandler(view: SubresourceView): ResourceHandler {
  return async (target, context, params) => {
    const type = patchTypeOf(context.request, target.settings.cbor);
    if (type === "apply") return await createApplyViewHandler(view)(target, context, params);
    const shown = viewTarget(target, view);
    const responseOptions = responseOptionsOf(shown, context, "object");
    const sent = await readPatchBody(context, type, view.kind);
    const { dryRun, fieldManager, fieldValidation } = sent;
    const decode = (value: unknown, show: (why: string) => DecodeFailure): ApiObject => {
      context.warnings.length = 0;
      return decodePatched(sent, value, show, expectedBodyOf(shown), fieldValidation, context.warnings);
    };
    const admission = createAdmission(target, context, params, { dryRun, objectKind: objectKindOf(shown) });
    const writer = fieldManagerOptions(context, fieldManager);
    const options = { dryRun, view, decode, admission, warn: warningAppender(context), ...writer };
    const scope = scopeOf(target, context, params);
    const object = await patchView(target.registry, scope, params.name ?? "", sent.patch, options);
    return writtenResponse(200, view.kind, object, responseOptions);
  };
}

function createApplyViewHandler(view: SubresourceView): ResourceHandler {
  return async (target, context, params) => {
    const shown = viewTarget(target, view);
    const responseOptions = responseOptionsOf(shown, context, "object");
    const { configuration, options } = await readApplyBody(context);
    const scope = scopeOf(target, context, params);
    const { dryRun } = options;
    const admission = createAdmission(target, context, params, { dryRun, objectKind: objectKindOf(shown) });
    const all = { ...options, view, admission };
    const object = await applyView(target.registry, scope, params.name ?? "", configuration, all);
    return writtenResponse(200, view.kind, object, responseOptions);
  };
}
