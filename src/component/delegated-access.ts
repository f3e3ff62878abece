/** Access to a program's own endpoints: the API server authenticates tokens and authorizes users. */
import { readFile } from "node:fs/promises";
import { tokenReviewKind } from "../api/authentication/review-kinds.ts";
import type { TokenReviewStatus } from "../api/authentication/token-review.ts";
import { subjectAccessReviewKind } from "../api/authorization/access-review/kinds.ts";
import { StatusError } from "../api/status.ts";
import { anonymousAuthenticator } from "../auth/authn/anonymous.ts";
import { bearerAuthenticator } from "../auth/authn/token/bearer-token.ts";
import { cacheTokens } from "../auth/authn/token/token-cache.ts";
import { tokenWebhookAuthenticator } from "../auth/authn/token/token-webhook.ts";
import { unionAuthenticator } from "../auth/authn/union.ts";
import { x509Authenticator } from "../auth/authn/x509/x509.ts";
import { webhookAuthorizer } from "../auth/authz/webhook/webhook.ts";
import type { Authenticator, Authorizer } from "../auth/user.ts";
import { RetryableError } from "../auth/webhook/retry.ts";
import type { Client } from "../client/client.ts";
import type { Filter, HttpRequest } from "../http/message.ts";
import { textResponse } from "../http/respond.ts";
import { systemRandom } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";

/** The API server checks audiences: tokens that it accepts are accepted here. */
const AUDIENCES = ["component"];

export interface DelegatedAccessOptions {
  /** PEM file of the CA of client certificates; empty: none are accepted. */
  readonly clientCaFile: string;
  /** For TokenReviews; undefined: no tokens are accepted. */
  readonly authenticationClient: Client | undefined;
  readonly tokenCacheMs: number;
  /** For SubjectAccessReviews; undefined: only the allowed paths are served. */
  readonly authorizationClient: Client | undefined;
  readonly allowedMs: number;
  readonly deniedMs: number;
  /** Paths that everyone may read; `*` at the end stands for any rest. */
  readonly allowedPaths: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

export interface DelegatedAccess {
  /** Answers 401 and 403. */
  readonly filter: Filter;
  /** PEM of the CA of client certificates. */
  readonly clientCa: string | undefined;
}

/** Rejects when the CA file cannot be read. */
export async function createDelegatedAccess(options: DelegatedAccessOptions): Promise<DelegatedAccess> {
  const { clientCaFile, allowedPaths, clock } = options;
  const clientCa = clientCaFile === "" ? undefined : await readFile(clientCaFile, "utf8");
  const x509 = clientCa === undefined ? [] : [x509Authenticator({ caPem: clientCa, clock }).authenticate];
  const authenticate = unionAuthenticator([...x509, ...tokenAuthenticators(options)], anonymousAuthenticator());
  const authorizer = createAuthorizer(options);
  const filter: Filter = (next) => async (request) => {
    const refused = await checkAccess(request, authenticate, authorizer, allowedPaths);
    return refused ?? (await next(request));
  };
  return { filter, clientCa };
}

async function checkAccess(
  request: HttpRequest,
  authenticate: Authenticator,
  authorizer: Authorizer | undefined,
  allowedPaths: readonly string[],
) {
  const { method, path, headers, peer } = request;
  try {
    const user = await authenticate({
      certificates: peer.certificates,
      authorization: headers.authorization,
      header: (name) => headers[name],
      path,
    });
    if (user === undefined) return textResponse(401, "Unauthorized");
    if (allowedPaths.some((pattern) => matchesPath(pattern, path))) return undefined;
    const none = { namespace: "", apiGroup: "", apiVersion: "", resource: "", subresource: "", name: "" };
    const verb = method.toLowerCase();
    const authorization = await authorizer?.authorize({ user, verb, isResourceRequest: false, ...none, path });
    if (authorization?.decision === "allow") return undefined;
    if (authorization?.error !== undefined) return textResponse(500, "Internal Server Error: authorization failed\n");
    return textResponse(
      403,
      `Forbidden: User ${JSON.stringify(user.name)} cannot ${verb} path ${JSON.stringify(path)}\n`,
    );
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 401) return textResponse(401, "Unauthorized");
    throw error;
  }
}

function matchesPath(pattern: string, path: string): boolean {
  if (pattern.endsWith("*")) return path.startsWith(pattern.slice(0, -1));
  return path === pattern || path === `/${pattern}`;
}

function tokenAuthenticators({ authenticationClient: client, tokenCacheMs, clock }: DelegatedAccessOptions) {
  if (client === undefined) return [];
  const review = async ({ token }: { readonly token: string }): Promise<TokenReviewStatus> => {
    try {
      const { status = {} } = await client.create(tokenReviewKind, { spec: { token } });
      const { audiences: _, ...result } = status;
      return result;
    } catch (error) {
      if (error instanceof StatusError && error.status.code < 500 && error.status.code !== 429) throw error;
      throw new RetryableError((error as Error).message, { cause: error });
    }
  };
  const tokens = tokenWebhookAuthenticator({ review, audiences: AUDIENCES, clock, random: systemRandom });
  const ttl = { successTtlMs: tokenCacheMs, failureTtlMs: tokenCacheMs };
  return [bearerAuthenticator(cacheTokens(tokens, { clock, ...ttl }), AUDIENCES)];
}

function createAuthorizer(options: DelegatedAccessOptions): Authorizer | undefined {
  const { authorizationClient: client, allowedMs, deniedMs, clock, log } = options;
  if (client === undefined) return undefined;
  return webhookAuthorizer({
    name: "API server",
    review: async (spec) => {
      const { status } = await client.create(subjectAccessReviewKind, { spec: { ...spec } });
      if (status === undefined) throw new Error("the API server's response has no status");
      return status;
    },
    authorizedTtlMs: allowedMs,
    unauthorizedTtlMs: deniedMs,
    failurePolicy: "NoOpinion",
    matchConditions: [],
    clock,
    random: systemRandom,
    log,
  });
}
