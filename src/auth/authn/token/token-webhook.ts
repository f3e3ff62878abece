/** Token authentication by a webhook: sends a `TokenReview`. */
import type { TokenReviewStatus } from "../../../api/authentication/token-review.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { extraOf } from "../../user.ts";
import { retryWebhook } from "../../webhook/retry.ts";
import { InvalidCredentialsError } from "../invalid-credentials-error.ts";
import type { TokenAuthenticator } from "./bearer-token.ts";

/** Sends one review. Rejects with a `RetryableError` for a temporary failure. */
export type ReviewToken = (spec: {
  readonly token: string;
  readonly audiences: readonly string[];
}) => Promise<TokenReviewStatus>;

export interface TokenWebhookOptions {
  readonly review: ReviewToken;
  /** The audiences of this server, for webhooks that do not support audiences. */
  readonly audiences: readonly string[];
  readonly clock: Clock;
  readonly random: RandomSource;
}

export function tokenWebhookAuthenticator(options: TokenWebhookOptions): TokenAuthenticator {
  return async ({ text: token }, requested) => {
    const status = await reviewWithRetries(options, { token, audiences: requested });
    if (status.authenticated !== true) {
      if ((status.error ?? "") !== "")
        throw new InvalidCredentialsError(`the webhook rejected the token: ${JSON.stringify(status.error)}`);
      return undefined;
    }
    const validAudiences = (status.audiences ?? []).length > 0 ? status.audiences! : options.audiences;
    const audiences = requested.filter((audience) => validAudiences.includes(audience));
    if (audiences.length === 0) return undefined;
    const { username: name = "", uid = "", groups = [], extra = {} } = status.user ?? {};
    if (name === "") throw new InvalidCredentialsError("the webhook returned no user");
    return { user: { name, uid, groups, extra: extraOf(extra) }, audiences };
  };
}

async function reviewWithRetries(
  options: TokenWebhookOptions,
  spec: Parameters<ReviewToken>[0],
): Promise<TokenReviewStatus> {
  try {
    return await retryWebhook(() => options.review(spec), options);
  } catch (cause) {
    throw new InvalidCredentialsError(`Failed to call the token webhook: ${(cause as Error).message}`, { cause });
  }
}
