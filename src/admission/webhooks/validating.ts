/** `ValidatingAdmissionWebhook`: programs of the cluster's users say whether an object may be written. */
import { validatingWebhookConfigurationKind } from "../../api/admissionregistration/webhook-configuration/validating-kind.ts";
import { andThen } from "../../std/async/maybe-promise.ts";
import type { PluginDeps } from "../chain/factory.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../chain/plugin.ts";
import { isExemptConfiguration } from "../matching/rules.ts";
import { callWebhook } from "./call.ts";
import { type WebhookDeps, webhookDeps } from "./deps.ts";
import { type Hook, Hooks } from "./hook.ts";
import { outcomeOf } from "./outcome.ts";
import { type Concerned, Question } from "./question.ts";

const NAME = "ValidatingAdmissionWebhook";
const FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/round_0_index_";

/** Rejects with one sentence for the operator. */
export async function validatingAdmissionWebhook(pluginDeps: PluginDeps): Promise<AdmissionPlugin> {
  const deps = await webhookDeps(pluginDeps, NAME);
  const hooks = new Hooks("ValidatingWebhookConfiguration", deps.log);
  return {
    name: NAME,
    handles: (place) => !isExemptConfiguration(place),
    validate: (request) =>
      andThen(deps.reader.list(validatingWebhookConfigurationKind, "", request), (configurations) => {
        return configurations.length === 0 ? undefined : askConcerned(hooks.of(configurations), request, deps);
      }),
  };
}

async function askConcerned(hooks: readonly Hook[], request: AdmissionRequest, deps: WebhookDeps): Promise<void> {
  const question = new Question(request, deps);
  const asked: Concerned[] = [];
  for (const hook of hooks) {
    const concerned = await question.concerned(hook);
    if (concerned !== undefined) asked.push(concerned);
  }
  if (asked.length > 0) await askAll(asked, request, deps);
}

/** All at once; the first to refuse is who the client hears of. */
async function askAll(asked: readonly Concerned[], request: AdmissionRequest, deps: WebhookDeps): Promise<void> {
  const refusals: unknown[] = [];
  await Promise.all(
    asked.map(async ({ hook, form, objects }, place) => {
      const failedOpen = (): void => request.annotate(`${FAILED_OPEN}${place}`, hook.webhook.name);
      const call = async () => await callWebhook(hook, request, form, objects, false, deps);
      await outcomeOf(deps, "validating", hook, request, call, failedOpen).catch((error) => refusals.push(error));
    }),
  );
  if (refusals.length > 0) throw refusals[0];
}
