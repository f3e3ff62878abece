import { tokenRequestKind } from "../../api/authentication/review-kinds.ts";
import type { TokenRequest } from "../../api/authentication/token-request.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { updateManagedFields } from "../../registry/managed-fields/track-managed-fields.ts";
import type { Registries } from "../../registry/registries.ts";
import { requestToken, type TokenSettings } from "../../registry/subresources/token-request.ts";
import { runMutatingAdmission } from "../../registry/write/admission.ts";
import { applyDefaults } from "../../registry/write/apply-defaults.ts";
import { writtenResponse } from "../responses/object-response.ts";
import { createAdmission, objectKindOf } from "./admission.ts";
import { readObjectBody } from "./body.ts";
import { fieldManagerOptions } from "./field-manager.ts";
import { UNSTORED_BYTES_MAX } from "./read-body.ts";
import { expectedBodyOf, type ResourceHandler, type ResourceTarget, responseOptionsOf, scopeOf } from "./target.ts";
import { warningAppender } from "./write-options.ts";

/** POST to `serviceaccounts/NAME/token`. A dry run issues a token too, as in Kubernetes: tokens are not stored. */
export function createTokenRequestHandler(
  registries: Registries,
  settings: TokenSettings,
  aliases: boolean,
): ResourceHandler {
  const kind = tokenRequestKind as ResourceTarget["kind"];
  const registry = registries.of(kind);
  return async (target, context, params) => {
    // The path has no group: the response uses the alias of the body.
    let group = aliases ? kubernetesGroup(kind.group) : kind.group;
    const onGroup = (named: string): void => {
      group = named;
    };
    const expected = { ...expectedBodyOf({ ...target, kind, group }), bytesMax: UNSTORED_BYTES_MAX, onGroup };
    const {
      object: sent,
      dryRun,
      fieldManager,
    } = await readObjectBody<TokenRequest>(context, expected, "CreateOptions");
    const shown = { ...target, kind, group, registry };
    const responseOptions = responseOptionsOf(shown, context, "review");
    const scope = scopeOf(shown, context, params);
    const warn = warningAppender(context);
    const admission = createAdmission(target, context, params, { dryRun, objectKind: objectKindOf(shown) });
    const options = { admission, warn, ...fieldManagerOptions(context, fieldManager) };
    const request = { registry, scope, name: params.name ?? "", options };
    const tracked = updateManagedFields(request, applyDefaults(request, sent), undefined);
    const admitted = await runMutatingAdmission(request, tracked, undefined);
    const response = await requestToken(registries, settings, scope, params.name ?? "", admitted as TokenRequest, {
      validate: (request) => tokenRequestKind.strategy.validate?.(request) ?? [],
      warn,
      admission,
      annotate: (key, value) => context.annotations.add(key, value),
    });
    return writtenResponse(201, kind, response, responseOptions);
  };
}
