/** What the webhooks of one plugin are asked about one request: who is concerned, and what it is shown. */
import type { ApiObject } from "../../api/kind.ts";
import { forbidden } from "../../api/status.ts";
import { convertObject, type EquivalentResource, requestedResource } from "../matching/versioned-object.ts";
import { subjectOf } from "../chain/attributes.ts";
import type { AdmissionRequest } from "../chain/plugin.ts";
import type { WebhookDeps } from "./deps.ts";
import type { Hook } from "./hook.ts";
import { formFor } from "./match.ts";
import { describe, type Objects, objectsIn } from "./review.ts";

export interface Concerned {
  readonly hook: Hook;
  readonly form: EquivalentResource;
  readonly objects: Objects;
}

/** The request with its object as the webhooks before have left it. */
export class Question {
  readonly request: AdmissionRequest;
  readonly sent: EquivalentResource;
  readonly #deps: WebhookDeps;
  /** Each form is written once, however many webhooks read it. */
  readonly #shown = new Map<string, Objects>();

  constructor(request: AdmissionRequest, deps: WebhookDeps) {
    this.request = request;
    this.sent = requestedResource(request);
    this.#deps = deps;
  }

  /** The same about another object. */
  about(object: ApiObject): Question {
    return new Question(withObject(this.request, object), this.#deps);
  }

  /** Undefined where the webhook has no say. Throws where that cannot be found out. */
  async concerned(hook: Hook): Promise<Concerned | undefined> {
    const { request } = this;
    const form = await formFor(hook, request, this.#deps);
    if (form === undefined) return undefined;
    const objects = await this.#objectsIn(form);
    if (hook.conditions === undefined) return { hook, form, objects };
    const { user, namespace, name, subresource } = request;
    const resource = {
      group: request.group,
      resource: request.kind.plural,
      ...(subresource === "" ? {} : { subresource }),
      ...(namespace === "" ? {} : { namespace }),
      ...(name === "" ? {} : { name }),
    };
    const spoken = { ...objects, request: describe(request, form), user, resource };
    const { authorizer, clock, metrics } = this.#deps;
    const began = clock.monotonic();
    const { matches, error: problem, failedOpen: isOpen = false } = await hook.conditions.match(spoken, authorizer);
    const type = hook.kind === "MutatingWebhookConfiguration" ? "admit" : "validating";
    metrics.conditions.observe(
      { name: hook.webhook.name, type, operation: request.operation },
      isOpen || problem !== undefined ? "failed" : matches ? "matched" : "excluded",
      clock.monotonic() - began,
    );
    if (problem !== undefined) throw forbidden(subjectOf(request), problem);
    return matches ? { hook, form, objects } : undefined;
  }

  async #objectsIn(form: EquivalentResource): Promise<Objects> {
    const key = `${form.objects.group}/${form.objects.version}/${form.objects.kind}`;
    let objects = this.#shown.get(key);
    if (objects === undefined) {
      const { object, oldObject: previous, signal } = this.request;
      const shown = async (one: ApiObject | undefined) => one && (await convertObject(one, this.sent, form, signal));
      objects = objectsIn(form, await shown(object), await shown(previous));
      this.#shown.set(key, objects);
    }
    return objects;
  }
}

/** The request reads its own members when it is asked for them, so they are handed on one by one. */
function withObject(request: AdmissionRequest, object: ApiObject): AdmissionRequest {
  const { operation, kind, group, subresource, objectKind, namespace, name, oldObject: previous, options } = request;
  const { dryRun, user, signal, reinvocation } = request;
  return {
    ...{ operation, kind, group, subresource, objectKind, namespace, name, oldObject: previous, options },
    ...{ dryRun, user, signal, reinvocation, object },
    warn: (text) => request.warn(text),
    annotate: (key, value) => request.annotate(key, value),
  };
}
