/** Who asks the agent: client certificates of its authority, and tokens that the API server knows. */
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

export interface AgentAuthentication extends Disposable {
  readonly authenticate: Authenticator;
  /** PEM; undefined where no certificates make users. */
  readonly clientCa: () => string | undefined;
}

export interface AgentAuthenticationOptions {
  readonly server: Pick<AgentConfig["server"], "clientCaFile" | "anonymousAuth" | "tokenCacheMs">;
  /** Undefined for an agent without an API server: nobody can say whose tokens are. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The API server says whom its tokens are for: what it lets in is for the agent too. */
const AUDIENCES = ["svclet"];

/** Rejects when the authority's file cannot be used; later, what cannot be used is logged and changes nothing. */
export async function createAgentAuthentication(options: AgentAuthenticationOptions): Promise<AgentAuthentication> {
  const { server, client, clock, log } = options;
  const { clientCaFile: file, anonymousAuth, tokenCacheMs } = server;
  let ca = file === "" ? undefined : await readFile(file, "utf8");
  const x509 = ca === undefined ? undefined : x509Authenticator({ caPem: ca, clock });
  const reloadCa = async (): Promise<void> => {
    const next = await readFile(file, "utf8");
    if (next === ca) return;
    ca = next;
    x509?.setAuthorities(next);
    log.info("Read the authorities of clients anew", { file });
  };
  const watching =
    x509 === undefined
      ? undefined
      : watchFiles([file], clock, () => {
          reloadCa().catch((error: unknown) => log.error("Cannot use the authorities of clients", error, { file }));
        });
  if (tokenCacheMs !== undefined && client === undefined) {
    log.warn("Believes no bearer tokens: there is no API server to ask whose they are");
  }
  const authenticators = [
    ...(x509 === undefined ? [] : [x509.authenticate]),
    ...(tokenCacheMs === undefined || client === undefined
      ? []
      : [createTokenReviewAuthenticator(client, tokenCacheMs, clock)]),
  ];
  return {
    authenticate: unionAuthenticator(authenticators, anonymousAuth ? anonymousAuthenticator() : undefined),
    clientCa: () => ca,
    [Symbol.dispose]: () => watching?.[Symbol.dispose](),
  };
}

function createTokenReviewAuthenticator(client: Client, cacheMs: number, clock: Clock): Authenticator {
  const review = async ({ token }: { readonly token: string }): Promise<TokenReviewStatus> => {
    try {
      const { status = {} } = await client.create(tokenReviewKind, { spec: { token } });
      const { audiences: _, ...answer } = status;
      return answer;
    } catch (error) {
      if (error instanceof StatusError && error.status.code < 500 && error.status.code !== 429) throw error;
      throw new RetryableError((error as Error).message, { cause: error });
    }
  };
  const tokens = tokenWebhookAuthenticator({ review: review, audiences: AUDIENCES, clock, random: systemRandom });
  return bearerAuthenticator(cacheTokens(tokens, { clock, successTtlMs: cacheMs, failureTtlMs: cacheMs }), AUDIENCES);
}
