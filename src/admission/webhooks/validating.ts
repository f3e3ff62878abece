/** `ValidatingAdmissionWebhook`: calls the webhooks that validate objects, in parallel. */
import { validatingWebhookConfigurationKind } from "../../api/admissionregistration/webhook-configuration/validating-kind.ts";
import { andThen } from "../../std/async/maybe-promise.ts";
import type { AdmissionRequest } from "../chain/attributes.ts";
import type { PluginDeps } from "../chain/factory.ts";
import type { AdmissionPlugin } from "../chain/plugin.ts";
import { isExemptConfiguration } from "../matching/rules.ts";
import { AdmissionReviewRequest, type MatchedWebhook } from "./admission-review-request.ts";
import { callWebhook } from "./call-webhook.ts";
import { createWebhookDeps, type WebhookDeps } from "./deps.ts";
import { callWithFailurePolicy } from "./failure-policy.ts";
import { type ConfiguredWebhook, WebhookSource } from "./webhook-source.ts";

const NAME = "ValidatingAdmissionWebhook";
const FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/round_0_index_";

/** Rejects with an error in one sentence, for the operator. */
export async function validatingAdmissionWebhook(pluginDeps: PluginDeps): Promise<AdmissionPlugin> {
  const deps = await createWebhookDeps(pluginDeps, NAME);
  const webhooks = new WebhookSource("ValidatingWebhookConfiguration", deps.log);
  return {
    name: NAME,
    handles: (attributes) => !isExemptConfiguration(attributes),
    validate: (request) =>
      andThen(deps.reader.list(validatingWebhookConfigurationKind, "", request), (configurations) => {
        return configurations.length === 0 ? undefined : dispatch(webhooks.webhooksOf(configurations), request, deps);
      }),
  };
}

async function dispatch(
  webhooks: readonly ConfiguredWebhook[],
  request: AdmissionRequest,
  deps: WebhookDeps,
): Promise<void> {
  const review = new AdmissionReviewRequest(request, deps);
  const matched: MatchedWebhook[] = [];
  for (const webhook of webhooks) {
    const match = await review.match(webhook);
    if (match !== undefined) matched.push(match);
  }
  if (matched.length > 0) await callInParallel(matched, request, deps);
}

/** Calls all webhooks in parallel. The client gets the error of the first one that fails. */
async function callInParallel(
  matched: readonly MatchedWebhook[],
  request: AdmissionRequest,
  deps: WebhookDeps,
): Promise<void> {
  const errors: unknown[] = [];
  await Promise.all(
    matched.map(async ({ webhook, resource, objects }, index) => {
      const failedOpen = (): void => request.annotate(`${FAILED_OPEN}${index}`, webhook.definition.name);
      const call = async () => await callWebhook(webhook, request, resource, objects, false, deps);
      await callWithFailurePolicy(deps, "validating", webhook, request, call, failedOpen).catch((error) =>
        errors.push(error),
      );
    }),
  );
  if (errors.length > 0) throw errors[0];
}
