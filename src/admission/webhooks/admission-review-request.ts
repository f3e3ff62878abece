/** The webhooks that match a request, and the objects as each of them receives them. */
import type { ApiObject } from "../../api/kind.ts";
import { forbidden } from "../../api/status.ts";
import { type AdmissionRequest, subjectOf } from "../chain/attributes.ts";
import { convertObject, type EquivalentResource, requestedResource } from "../matching/equivalent-resource.ts";
import type { WebhookDeps } from "./deps.ts";
import { matchWebhook } from "./match-webhook.ts";
import { encodeObjects, type ReviewObjects, requestFields } from "./review.ts";
import type { ConfiguredWebhook } from "./webhook-source.ts";

export interface MatchedWebhook {
  readonly webhook: ConfiguredWebhook;
  readonly resource: EquivalentResource;
  readonly objects: ReviewObjects;
}

/** A request with the object as the webhooks so far left it. */
export class AdmissionReviewRequest {
  readonly request: AdmissionRequest;
  readonly requested: EquivalentResource;
  readonly #deps: WebhookDeps;
  /** Each version of the objects is encoded once, however many webhooks receive it. */
  readonly #encoded = new Map<string, ReviewObjects>();

  constructor(request: AdmissionRequest, deps: WebhookDeps) {
    this.request = request;
    this.requested = requestedResource(request);
    this.#deps = deps;
  }

  /** A copy with another object. */
  withObject(object: ApiObject): AdmissionReviewRequest {
    return new AdmissionReviewRequest(copyWithObject(this.request, object), this.#deps);
  }

  /** Undefined if the webhook does not apply to the request. Throws if that cannot be determined. */
  async match(webhook: ConfiguredWebhook): Promise<MatchedWebhook | undefined> {
    const { request } = this;
    const resource = await matchWebhook(webhook, request, this.#deps);
    if (resource === undefined) return undefined;
    const objects = await this.#encodeObjects(resource);
    if (webhook.conditions === undefined) return { webhook, resource, objects };
    const { user, namespace, name, subresource } = request;
    const target = {
      group: request.group,
      resource: request.kind.plural,
      ...(subresource === "" ? {} : { subresource }),
      ...(namespace === "" ? {} : { namespace }),
      ...(name === "" ? {} : { name }),
    };
    const variables = { ...objects, request: requestFields(request, resource), user, resource: target };
    const { authorizer, clock, metrics } = this.#deps;
    const start = clock.monotonic();
    const { matches, error, failedOpen = false } = await webhook.conditions.match(variables, authorizer);
    const type = webhook.kind === "MutatingWebhookConfiguration" ? "admit" : "validating";
    metrics.conditions.observe(
      { name: webhook.definition.name, type, operation: request.operation },
      failedOpen || error !== undefined ? "failed" : matches ? "matched" : "excluded",
      clock.monotonic() - start,
    );
    if (error !== undefined) throw forbidden(subjectOf(request), error);
    return matches ? { webhook, resource, objects } : undefined;
  }

  async #encodeObjects(resource: EquivalentResource): Promise<ReviewObjects> {
    const key = `${resource.objects.group}/${resource.objects.version}/${resource.objects.kind}`;
    let objects = this.#encoded.get(key);
    if (objects === undefined) {
      const { object, oldObject, signal } = this.request;
      const convert = async (one: ApiObject | undefined) =>
        one && (await convertObject(one, this.requested, resource, signal));
      objects = encodeObjects(resource, await convert(object), await convert(oldObject));
      this.#encoded.set(key, objects);
    }
    return objects;
  }
}

/** The members of a request are getters, so they are copied one by one. */
function copyWithObject(request: AdmissionRequest, object: ApiObject): AdmissionRequest {
  const { operation, kind, group, subresource, objectKind, namespace, name, oldObject, options } = request;
  const { dryRun, user, signal, reinvocation } = request;
  return {
    ...{ operation, kind, group, subresource, objectKind, namespace, name, oldObject, options },
    ...{ dryRun, user, signal, reinvocation, object },
    warn: (text) => request.warn(text),
    annotate: (key, value) => request.annotate(key, value),
  };
}
