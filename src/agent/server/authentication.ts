/** Authenticates clients of the agent: by client certificates, and by TokenReviews of the API server. */
import { readFile } from "node:fs/promises";
import { tokenReviewKind } from "../../api/authentication/review-kinds.ts";
import type { TokenReviewStatus } from "../../api/authentication/token-review.ts";
import { StatusError } from "../../api/status.ts";
import { anonymousAuthenticator } from "../../auth/authn/anonymous.ts";
import { bearerAuthenticator } from "../../auth/authn/token/bearer-token.ts";
import { cacheTokens } from "../../auth/authn/token/token-cache.ts";
import { tokenWebhookAuthenticator } from "../../auth/authn/token/token-webhook.ts";
import { unionAuthenticator } from "../../auth/authn/union.ts";
import { x509Authenticator } from "../../auth/authn/x509/x509.ts";
import type { Authenticator } from "../../auth/user.ts";
import { RetryableError } from "../../auth/webhook/retry.ts";
import type { Client } from "../../client/client.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AgentConfig } from "../agent-config.ts";
import type { ReviewMetrics } from "../metrics/review-metrics.ts";

export interface AgentAuthentication extends Disposable {
  readonly authenticate: Authenticator;
  /** PEM; undefined when client certificates are not accepted. */
  readonly clientCa: () => string | undefined;
}

export interface AgentAuthenticationOptions {
  readonly server: Pick<AgentConfig["server"], "clientCaFile" | "anonymousAuth" | "tokenCacheMs">;
  /** Undefined for an agent without an API server: it cannot verify tokens. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: ReviewMetrics | undefined;
}

/** The API server checks audiences: tokens that it accepts are accepted by the agent. */
const AUDIENCES = ["svclet"];

/** Rejects when the CA file is invalid; later, an invalid file is logged and the previous CA stays. */
export async function createAgentAuthentication(options: AgentAuthenticationOptions): Promise<AgentAuthentication> {
  const { server, client, clock, log, metrics } = options;
  const { clientCaFile: file, anonymousAuth, tokenCacheMs } = server;
  let ca = file === "" ? undefined : await readFile(file, "utf8");
  const x509 =
    ca === undefined
      ? undefined
      : x509Authenticator({ caPem: ca, clock, observeRemaining: metrics?.observeCertificate });
  const reloadCa = async (): Promise<void> => {
    const next = await readFile(file, "utf8");
    if (next === ca) return;
    ca = next;
    x509?.setAuthorities(next);
    log.info("Reloaded client CA file", { file });
  };
  const watching =
    x509 === undefined
      ? undefined
      : watchFiles([file], clock, () => {
          reloadCa().catch((error: unknown) => log.error("Cannot reload client CA file", error, { file }));
        });
  if (tokenCacheMs !== undefined && client === undefined) {
    log.warn("Not accepting bearer tokens: there is no API server to verify them");
  }
  const authenticators = [
    ...(x509 === undefined ? [] : [x509.authenticate]),
    ...(tokenCacheMs === undefined || client === undefined
      ? []
      : [createTokenReviewAuthenticator(client, tokenCacheMs, clock, metrics)]),
  ];
  return {
    authenticate: unionAuthenticator(authenticators, anonymousAuth ? anonymousAuthenticator() : undefined),
    clientCa: () => ca,
    [Symbol.dispose]: () => watching?.[Symbol.dispose](),
  };
}

function createTokenReviewAuthenticator(
  client: Client,
  cacheMs: number,
  clock: Clock,
  metrics: ReviewMetrics | undefined,
): Authenticator {
  const measure = metrics?.measureTokenReview ?? ((review) => review());
  const review = async ({ token }: { readonly token: string }): Promise<TokenReviewStatus> => {
    try {
      const { status = {} } = await measure(() => client.create(tokenReviewKind, { spec: { token } }));
      const { audiences: _, ...result } = status;
      return result;
    } catch (error) {
      if (error instanceof StatusError && error.status.code < 500 && error.status.code !== 429) throw error;
      throw new RetryableError((error as Error).message, { cause: error });
    }
  };
  const tokens = tokenWebhookAuthenticator({ review: review, audiences: AUDIENCES, clock, random: systemRandom });
  const observe = metrics?.tokenCache;
  const cached = cacheTokens(tokens, { clock, successTtlMs: cacheMs, failureTtlMs: cacheMs, observe });
  return bearerAuthenticator(cached, AUDIENCES);
}
