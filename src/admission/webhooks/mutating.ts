/** `MutatingAdmissionWebhook`: calls the webhooks that change objects before they are stored, in order. */

import { mutatingWebhookConfigurationKind } from "../../api/admissionregistration/webhook-configuration/mutating.ts";
import type { MutatingWebhook } from "../../api/admissionregistration/webhook-configuration/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { semanticEqual } from "../../schema/semantic-equal.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { andThen } from "../../std/async/maybe-promise.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import type { AdmissionRequest } from "../chain/attributes.ts";
import type { PluginDeps } from "../chain/factory.ts";
import type { AdmissionPlugin } from "../chain/plugin.ts";
import { convertObject, decodeJson } from "../matching/equivalent-resource.ts";
import { checkPatchedKind } from "../matching/patched-kind.ts";
import { isExemptConfiguration } from "../matching/rules.ts";
import { AdmissionReviewRequest, type MatchedWebhook } from "./admission-review-request.ts";
import { callWebhook } from "./call-webhook.ts";
import { createWebhookDeps, type WebhookDeps } from "./deps.ts";
import { callWithFailurePolicy, internalError } from "./failure-policy.ts";
import { applyWebhookPatch } from "./patch.ts";
import { type ConfiguredWebhook, nameOf, WebhookSource } from "./webhook-source.ts";

const NAME = "MutatingAdmissionWebhook";
const MUTATION = "mutation.webhook.admission.k8s.io/";

/** Rejects with an error in one sentence, for the operator. */
export async function mutatingAdmissionWebhook(pluginDeps: PluginDeps): Promise<AdmissionPlugin> {
  const deps = await createWebhookDeps(pluginDeps, NAME);
  const webhooks = new WebhookSource("MutatingWebhookConfiguration", deps.log);
  return {
    name: NAME,
    handles: (attributes) => !isExemptConfiguration(attributes),
    mutate: (request) =>
      andThen(deps.reader.list(mutatingWebhookConfigurationKind, "", request), (configurations) => {
        return configurations.length === 0 ? undefined : dispatch(webhooks.webhooksOf(configurations), request, deps);
      }),
  };
}

/** State of the first run of the webhooks that reinvocation needs. */
interface WebhookReinvocationState {
  /** The object that the webhooks returned. */
  lastOutput: ApiObject | undefined;
  /** Webhooks with reinvocationPolicy IfNeeded that were called since the last change. */
  readonly reinvocable: Set<string>;
  /** Webhooks to call again, since the object changed after them. */
  readonly reinvoke: Set<string>;
}

function requireReinvocation({ reinvocable, reinvoke }: WebhookReinvocationState): void {
  for (const id of reinvocable) reinvoke.add(id);
  reinvocable.clear();
}

async function dispatch(
  webhooks: readonly ConfiguredWebhook[],
  request: AdmissionRequest,
  deps: WebhookDeps,
): Promise<ApiObject | undefined> {
  const { reinvocation, objectKind } = request;
  const state = (reinvocation.pluginState.get(NAME) as WebhookReinvocationState | undefined) ?? newReinvocationState();
  reinvocation.pluginState.set(NAME, state);
  const isChanged = !semanticEqual(objectKind.schema, state.lastOutput, request.object);
  if (reinvocation.isReinvocation && isChanged) requireReinvocation(state);
  let review = new AdmissionReviewRequest(request, deps);
  let object: ApiObject | undefined;
  for (const [index, webhook] of webhooks.entries()) {
    const matched = await review.match(webhook);
    if (matched === undefined || (reinvocation.isReinvocation && !state.reinvoke.has(webhook.id))) continue;
    const next = await callMutatingWebhook(matched, index, review, deps);
    if (next !== undefined) {
      object = next.object;
      review = review.withObject(next.object);
      if (next.changed) {
        requireReinvocation(state);
        reinvocation.request();
      }
    }
    if ((webhook.definition as MutatingWebhook).reinvocationPolicy === "IfNeeded") state.reinvocable.add(webhook.id);
  }
  state.lastOutput = object ?? request.object;
  return object;
}

function newReinvocationState(): WebhookReinvocationState {
  return { lastOutput: undefined, reinvocable: new Set(), reinvoke: new Set() };
}

interface MutationResult {
  readonly object: ApiObject;
  readonly changed: boolean;
}

/** Undefined if the webhook leaves the object unchanged. */
async function callMutatingWebhook(
  matched: MatchedWebhook,
  index: number,
  review: AdmissionReviewRequest,
  deps: WebhookDeps,
): Promise<MutationResult | undefined> {
  const { request } = review;
  const { webhook } = matched;
  const { name } = webhook.definition;
  const round = `round_${request.reinvocation.isReinvocation ? 1 : 0}_index_${index}`;
  const failedOpen = (): void => request.annotate(`failed-open.${MUTATION}${round}`, name);
  let mutated = false;
  const call = async (): Promise<MutationResult | undefined> => {
    const result = await mutate(matched, review, deps);
    mutated = result?.changed === true;
    return result;
  };
  try {
    return await callWithFailurePolicy(deps, "admit", webhook, request, call, failedOpen);
  } finally {
    const annotation = { configuration: nameOf(webhook.configuration), webhook: name, mutated };
    request.annotate(`${MUTATION}${round}`, stringifyExact(annotation));
  }
}

async function mutate(
  { webhook, resource, objects }: MatchedWebhook,
  { request, requested }: AdmissionReviewRequest,
  deps: WebhookDeps,
): Promise<MutationResult | undefined> {
  const { patch } = await callWebhook(webhook, request, resource, objects, true, deps);
  if (patch.length === 0) return undefined;
  const { object } = objects;
  const slice = new TimeSlice();
  const patched = await applyWebhookPatch(patch, object, webhook.definition.name, slice);
  if (patched === undefined || deepEqual(patched, object)) return undefined;
  await slice.yield();
  checkPatchedKind(resource, patched, deps.scheme, "drop");
  try {
    const decoded = decodeJson(resource, patched);
    await slice.yield();
    const next = await convertObject(decoded, resource, requested, request.signal);
    const changed = !semanticEqual(requested.schema, request.object, next);
    await slice.yield();
    return { object: next, changed };
  } catch (error) {
    throw internalError((error as Error).message, error);
  }
}
