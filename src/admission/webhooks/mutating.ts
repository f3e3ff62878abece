/** `MutatingAdmissionWebhook`: programs of the cluster's users change objects before they are written. */
import { mutatingWebhookConfigurationKind } from "../../api/admissionregistration/webhook-configuration/mutating-kind.ts";
import type { MutatingWebhook } from "../../api/admissionregistration/webhook-configuration/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { semanticEqual } from "../../schema/semantic-equal.ts";
import { andThen } from "../../std/async/maybe-promise.ts";
import type { PluginDeps } from "../chain/factory.ts";
import { convertObject, decodeJson } from "../matching/versioned-object.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../chain/plugin.ts";
import { isExemptConfiguration } from "../matching/rules.ts";
import { callWebhook } from "./call.ts";
import { type WebhookDeps, webhookDeps } from "./deps.ts";
import { type Hook, Hooks, nameOf } from "./hook.ts";
import { internalError, outcomeOf } from "./outcome.ts";
import { patchedBy } from "./patch.ts";
import { type Concerned, Question } from "./question.ts";

const NAME = "MutatingAdmissionWebhook";
const MUTATION = "mutation.webhook.admission.k8s.io/";

/** Rejects with one sentence for the operator. */
export async function mutatingAdmissionWebhook(pluginDeps: PluginDeps): Promise<AdmissionPlugin> {
  const deps = await webhookDeps(pluginDeps, NAME);
  const hooks = new Hooks("MutatingWebhookConfiguration", deps.log);
  return {
    name: NAME,
    handles: (place) => !isExemptConfiguration(place),
    mutate: (request) =>
      andThen(deps.reader.list(mutatingWebhookConfigurationKind, "", request), (configurations) => {
        return configurations.length === 0 ? undefined : askInTurn(hooks.of(configurations), request, deps);
      }),
  };
}

/** What is kept between the first time the webhooks are asked and the second. */
interface Rounds {
  /** The object as the webhooks left it. */
  output: ApiObject | undefined;
  /** Webhooks that want to see what was changed after them, and were called since the last change. */
  readonly called: Set<string>;
  /** Those of them after which something was changed. */
  readonly due: Set<string>;
}

function changedAfter({ called, due }: Rounds): void {
  for (const id of called) due.add(id);
  called.clear();
}

async function askInTurn(
  hooks: readonly Hook[],
  request: AdmissionRequest,
  deps: WebhookDeps,
): Promise<ApiObject | undefined> {
  const { reinvocation, objectKind } = request;
  const rounds = (reinvocation.pluginState.get(NAME) as Rounds | undefined) ?? newRounds();
  reinvocation.pluginState.set(NAME, rounds);
  const isChanged = !semanticEqual(objectKind.schema, rounds.output, request.object);
  if (reinvocation.isReinvocation && isChanged) changedAfter(rounds);
  let question = new Question(request, deps);
  let object: ApiObject | undefined;
  for (const [place, hook] of hooks.entries()) {
    const concerned = await question.concerned(hook);
    if (concerned === undefined || (reinvocation.isReinvocation && !rounds.due.has(hook.id))) continue;
    const next = await askOne(concerned, place, question, deps);
    if (next !== undefined) {
      object = next.object;
      question = question.about(next.object);
      if (next.changed) {
        changedAfter(rounds);
        reinvocation.request();
      }
    }
    if ((hook.webhook as MutatingWebhook).reinvocationPolicy === "IfNeeded") rounds.called.add(hook.id);
  }
  rounds.output = object ?? request.object;
  return object;
}

function newRounds(): Rounds {
  return { output: undefined, called: new Set(), due: new Set() };
}

interface Answered {
  readonly object: ApiObject;
  readonly changed: boolean;
}

/** Undefined where the webhook leaves the object as it is. */
async function askOne(
  concerned: Concerned,
  place: number,
  question: Question,
  deps: WebhookDeps,
): Promise<Answered | undefined> {
  const { request } = question;
  const { hook } = concerned;
  const { name } = hook.webhook;
  const at = `round_${request.reinvocation.isReinvocation ? 1 : 0}_index_${place}`;
  const failedOpen = (): void => request.annotate(`failed-open.${MUTATION}${at}`, name);
  let mutated = false;
  const work = async (): Promise<Answered | undefined> => {
    const answered = await changedBy(concerned, question, deps);
    mutated = answered?.changed === true;
    return answered;
  };
  try {
    return await outcomeOf(deps, "admit", hook, request, work, failedOpen);
  } finally {
    const told = { configuration: nameOf(hook.configuration), webhook: name, mutated };
    request.annotate(`${MUTATION}${at}`, JSON.stringify(told));
  }
}

async function changedBy(
  { hook, form, objects }: Concerned,
  { request, sent }: Question,
  deps: WebhookDeps,
): Promise<Answered | undefined> {
  const { patch } = await callWebhook(hook, request, form, objects, true, deps);
  if (patch.length === 0) return undefined;
  const { object } = objects;
  const patched = patchedBy(patch, object, hook.webhook.name);
  if (patched === undefined || deepEqual(patched, object)) return undefined;
  try {
    const next = await convertObject(decodeJson(form, patched), form, sent, request.signal);
    return { object: next, changed: !semanticEqual(sent.schema, request.object, next) };
  } catch (error) {
    throw internalError((error as Error).message, error);
  }
}
