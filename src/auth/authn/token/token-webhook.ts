/** Tokens that somebody else knows: asked over HTTPS with a `TokenReview`. */
import type { TokenReviewStatus } from "../../../api/authentication/token-review.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import { askPatiently } from "../../webhook/retry.ts";
import { Refusal } from "../invalid-credentials-error.ts";
import type { TokenAuthenticator } from "./bearer-token.ts";

/** Asks once. Rejects with a `Passing` for what may be different in a moment. */
export type AskToken = (spec: {
  readonly token: string;
  readonly audiences: readonly string[];
}) => Promise<TokenReviewStatus>;

export interface TokenWebhookOptions {
  readonly ask: AskToken;
  /** Whom this server is: what the webhook says that knows nothing of audiences is for these. */
  readonly audiences: readonly string[];
  readonly clock: Clock;
  readonly random: RandomSource;
}

export function tokenWebhook(options: TokenWebhookOptions): TokenAuthenticator {
  return async ({ text: token }, asked) => {
    const status = await answered(options, { token, audiences: asked });
    if (status.authenticated !== true) {
      if ((status.error ?? "") !== "") throw new Refusal(`the webhook refuses it: ${JSON.stringify(status.error)}`);
      return undefined;
    }
    const meantFor = (status.audiences ?? []).length > 0 ? status.audiences! : options.audiences;
    const audiences = asked.filter((audience) => meantFor.includes(audience));
    if (audiences.length === 0) return undefined;
    const { username: name = "", uid = "", groups = [], extra = {} } = status.user ?? {};
    if (name === "") throw new Refusal("the webhook names no user");
    return { user: { name, uid, groups, extra }, audiences };
  };
}

async function answered(options: TokenWebhookOptions, spec: Parameters<AskToken>[0]): Promise<TokenReviewStatus> {
  try {
    return await askPatiently(() => options.ask(spec), options);
  } catch (cause) {
    throw new Refusal(`the webhook cannot be asked: ${(cause as Error).message}`, { cause });
  }
}
