/** Calls one webhook with an AdmissionReview. */
import { badRequest, StatusError } from "../../api/status.ts";
import type { WebhookClient } from "../../client/webhook/webhook-client.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { type RandomSource, randomUuid } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { type Attributes, addEvent, inSpan } from "../../tracing/span.ts";
import type { AdmissionRequest } from "../chain/attributes.ts";
import type { EquivalentResource } from "../matching/equivalent-resource.ts";
import { requestFields } from "../matching/request-fields.ts";
import {
  decodeReview,
  denial,
  encodeReview,
  type ReviewObjects,
  type ReviewResponse,
  selectReviewVersion,
} from "./review.ts";
import type { ConfiguredWebhook } from "./webhook-source.ts";

/** The call failed or the response is invalid; the webhook's failure policy applies. */
export class WebhookCallError extends Error {
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

const DEFAULT_TIMEOUT_SECONDS = 10;
const DRY_RUN_SAFE = ["None", "NoneOnDryRun"];

/**
 * Returns the response of a webhook that allows the request. Rejects with a `WebhookCallError`, or with the
 * `StatusError` of a webhook that denies it.
 */
export async function callWebhook(
  { definition: webhook, configuration }: ConfiguredWebhook,
  request: AdmissionRequest,
  resource: EquivalentResource,
  objects: ReviewObjects,
  mutating: boolean,
  deps: CallDeps,
): Promise<ReviewResponse> {
  const { name, sideEffects, clientConfig } = webhook;
  if (request.dryRun && !DRY_RUN_SAFE.includes(sideEffects ?? "")) {
    throw badRequest(`admission webhook ${goQuote(name)} does not support dry run`);
  }
  const uid = randomUuid(deps.random);
  const version = callOrFail(name, "could not create admission objects", BAD_REQUEST, () =>
    selectReviewVersion(webhook.admissionReviewVersions),
  );
  const body = encodeReview(version, uid, requestFields(request, resource), objects);
  const timeoutMs = (webhook.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000;
  const attributes = (): Attributes => ({
    configuration: configuration.metadata?.name ?? "",
    webhook: name,
    resource: `${resource.group}/${resource.version}, Resource=${resource.plural}`,
    subresource: request.subresource,
    operation: request.operation,
    UID: uid,
  });
  const calling = async () =>
    await inSpan(`Call ${mutating ? "mutating" : "validating"} webhook`, attributes, async () => {
      const found = await deps.client.post(clientConfig, body, timeoutMs, request.signal);
      addEvent("Request completed");
      return found;
    });
  const response = await calling().catch((error: Error) => {
    const code = error instanceof StatusError ? error.status.code : UNAVAILABLE;
    throw new WebhookCallError(name, `failed to call webhook: ${error.message}`, code, { cause: error });
  });
  const review = callOrFail(name, "received invalid webhook response", UNAVAILABLE, () =>
    decodeReview(response, version, uid, mutating),
  );
  for (const [key, value] of Object.entries(review.auditAnnotations)) request.annotate(`${name}/${key}`, value);
  for (const text of review.warnings) request.warn(text);
  if (!review.allowed) throw denial(name, review.status);
  return review;
}

const BAD_REQUEST = 400;
const UNAVAILABLE = 503;

function callOrFail<T>(webhook: string, what: string, code: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new WebhookCallError(webhook, `${what}: ${(error as Error).message}`, code, { cause: error });
  }
}
