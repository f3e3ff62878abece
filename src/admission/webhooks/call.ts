/** Calls one webhook with an AdmissionReview. */
import { badRequest, StatusError } from "../../api/status.ts";
import type { WebhookClient } from "../../client/webhook/webhook-client.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { type RandomSource, randomUuid } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { AdmissionRequest } from "../chain/plugin.ts";
import type { EquivalentResource } from "../matching/versioned-object.ts";
import type { Hook } from "./hook.ts";
import { denial, describe, type Objects, type Review, readReview, reviewText, reviewVersion } from "./review.ts";

/** The call failed or the response is invalid; the webhook's failure policy applies. */
export class CallFailed extends Error {
  override readonly name = "CallFailed";
  /** The code for the metrics. */
  readonly code: number;

  constructor(webhook: string, reason: string, code: number, options?: ErrorOptions) {
    super(`failed calling webhook ${goQuote(webhook)}: ${reason}`, options);
    this.code = code;
  }
}

export interface CallDeps {
  readonly client: WebhookClient;
  readonly random: RandomSource;
  readonly log: Logger;
}

const SECONDS = 10;
const HARMLESS = ["None", "NoneOnDryRun"];

/**
 * Returns the response of a webhook that allows the request. Rejects with a `WebhookCallError`, or with the
 * `StatusError` of a webhook that denies it.
 */
export async function callWebhook(
  { webhook }: Hook,
  request: AdmissionRequest,
  form: EquivalentResource,
  objects: Objects,
  mutating: boolean,
  deps: CallDeps,
): Promise<Review> {
  const { name, sideEffects, clientConfig } = webhook;
  if (request.dryRun && !HARMLESS.includes(sideEffects ?? "")) {
    throw badRequest(`admission webhook ${goQuote(name)} does not support dry run`);
  }
  const uid = randomUuid(deps.random);
  const version = attempt(name, "could not create admission objects", BAD_REQUEST, () =>
    reviewVersion(webhook.admissionReviewVersions),
  );
  const body = reviewText(version, uid, describe(request, form), objects);
  const timeoutMs = (webhook.timeoutSeconds ?? SECONDS) * 1000;
  const answer = await deps.client.post(clientConfig, body, timeoutMs, request.signal).catch((error: Error) => {
    const code = error instanceof StatusError ? error.status.code : UNAVAILABLE;
    throw new CallFailed(name, `failed to call webhook: ${error.message}`, code, { cause: error });
  });
  const review = attempt(name, "received invalid webhook response", UNAVAILABLE, () =>
    readReview(answer, version, uid, mutating),
  );
  for (const [key, value] of Object.entries(review.auditAnnotations)) request.annotate(`${name}/${key}`, value);
  for (const text of review.warnings) request.warn(text);
  if (!review.allowed) throw denial(name, review.status);
  return review;
}

const BAD_REQUEST = 400;
const UNAVAILABLE = 503;

function attempt<T>(webhook: string, what: string, code: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CallFailed(webhook, `${what}: ${(error as Error).message}`, code, { cause: error });
  }
}
