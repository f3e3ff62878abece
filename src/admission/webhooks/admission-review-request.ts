/** The webhooks that match a request, and the objects as each of them receives them. */
import type { ApiObject } from "../../api/kind.ts";
import { forbidden } from "../../api/status.ts";
import { toDynamicCelValue } from "../../cel/adapter/json-value.ts";
import { type AdmissionRequest, copyWithObject, subjectOf } from "../chain/attributes.ts";
import { AuthorizationChecks } from "../matching/authorization-checks.ts";
import { convertObject, type EquivalentResource, requestedResource } from "../matching/equivalent-resource.ts";
import { ExpressionRunner } from "../matching/expression-runner.ts";
import { createRequestBindings } from "../matching/request-bindings.ts";
import type { WebhookDeps } from "./deps.ts";
import { matchWebhook } from "./match-webhook.ts";
import { encodeObjects, type ReviewObjects } from "./review.ts";
import type { ConfiguredWebhook } from "./webhook-source.ts";

export interface MatchedWebhook {
  readonly webhook: ConfiguredWebhook;
  readonly resource: EquivalentResource;
  readonly objects: ReviewObjects;
}

/** The webhooks' JSON is used instead. */
const NO_OBJECTS = { object: undefined, oldObject: undefined };

/** A request with the object as the webhooks so far left it. */
export class AdmissionReviewRequest {
  readonly request: AdmissionRequest;
  readonly requested: EquivalentResource;
  readonly #deps: WebhookDeps;
  /** Each version of the objects is encoded once, however many webhooks receive it. */
  readonly #encoded = new Map<string, ReviewObjects>();
  readonly #runner = new ExpressionRunner();

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
    const { authorizer, clock, metrics } = this.#deps;
    const start = clock.monotonic();
    const checks = new AuthorizationChecks(request.user, authorizer);
    const bindings = {
      ...createRequestBindings(request, resource, NO_OBJECTS, checks),
      object: toDynamicCelValue(objects.object),
      oldObject: toDynamicCelValue(objects.oldObject),
    };
    const { conditions } = webhook;
    await conditions.compile();
    const { matches, error, failedOpen = false } = await conditions.match(bindings, this.#runner);
    const type = webhook.kind === "MutatingWebhookConfiguration" ? "admit" : "validating";
    metrics.conditions.observe(
      { name: webhook.definition.name, kind: "webhook", type, operation: request.operation },
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
