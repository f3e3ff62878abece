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
import { type X509Authenticator, x509Authenticator } from "../auth/authn/x509/x509.ts";
import { webhookAuthorizer } from "../auth/authz/webhook/webhook.ts";
import type { Authenticator, Authorizer } from "../auth/user.ts";
import { RetryableError } from "../auth/webhook/retry.ts";
import type { Client } from "../client/client.ts";
import type { Filter, HttpRequest } from "../http/message.ts";
import { textResponse } from "../http/respond.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { watchFiles } from "../std/fs/watch-files.ts";
import type { Logger } from "../std/log/logger.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import { measureAuthenticator, measureAuthorizer } from "./auth-metrics.ts";
import type { ClientCa } from "./serving.ts";

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
  readonly metrics: MetricRegistry;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface DelegatedAccess extends Disposable {
  /** Answers 401 and 403. */
  readonly filter: Filter;
  /** The CA of client certificates; undefined: none are accepted. */
  readonly clientCa: ClientCa | undefined;
}

/** Rejects when the CA file cannot be read. */
export async function createDelegatedAccess(options: DelegatedAccessOptions): Promise<DelegatedAccess> {
  const { allowedPaths, clock, metrics } = options;
  const clients = await openClientCa(options);
  const x509 = clients === undefined ? [] : [clients.x509.authenticate];
  const authenticate = measureAuthenticator(
    unionAuthenticator([...x509, ...tokenAuthenticators(options)], anonymousAuthenticator()),
    metrics,
    clock,
  );
  const delegated = createAuthorizer(options);
  const authorizer = measureAuthorizer(allowPaths(allowedPaths, delegated), metrics, clock);
  const filter: Filter = (next) => async (request) => {
    const refused = await checkAccess(request, authenticate, authorizer);
    return refused ?? (await next(request));
  };
  return { filter, clientCa: clients, [Symbol.dispose]: () => clients?.[Symbol.dispose]() };
}

type FollowedClientCa = ClientCa & Disposable & { readonly x509: X509Authenticator };

/** Rejects when the file cannot be read. Later a file without certificates changes nothing. */
async function openClientCa({
  clientCaFile,
  clock,
  log,
}: DelegatedAccessOptions): Promise<FollowedClientCa | undefined> {
  if (clientCaFile === "") return undefined;
  let caPem = await readFile(clientCaFile, "utf8");
  const x509 = x509Authenticator({ caPem, clock });
  const listeners: (() => void)[] = [];
  const reload = async (): Promise<void> => {
    try {
      const next = await readFile(clientCaFile, "utf8");
      if (next === caPem) return;
      x509.setAuthorities(next);
      caPem = next;
      for (const listener of listeners) listener();
      log.info("Reloaded the CA of client certificates", { file: clientCaFile });
    } catch (error) {
      log.error("Cannot reload the CA of client certificates; the previous one stays in use", error);
    }
  };
  const watch = watchFiles([clientCaFile], clock, () => void reload());
  return {
    x509,
    current: () => caPem,
    onChange: (listener) => void listeners.push(listener),
    [Symbol.dispose]: () => watch[Symbol.dispose](),
  };
}

/** The paths that everyone may read; what else, the other authorizer decides. */
function allowPaths(patterns: readonly string[], next: Authorizer | undefined): Authorizer {
  return {
    authorize: (attributes) =>
      patterns.some((pattern) => matchesPath(pattern, attributes.path))
        ? { decision: "allow", reason: "" }
        : (next?.authorize(attributes) ?? { decision: "no-opinion", reason: "" }),
  };
}

async function checkAccess(request: HttpRequest, authenticate: Authenticator, authorizer: Authorizer) {
  const { method, path, headers, peer } = request;
  try {
    const user = await authenticate({
      certificates: peer.certificates,
      authorization: headers.authorization,
      header: (name) => headers[name],
      path,
    });
    if (user === undefined) return textResponse(401, "Unauthorized");
    const none = { namespace: "", apiGroup: "", apiVersion: "", resource: "", subresource: "", name: "" };
    const verb = method.toLowerCase();
    const authorization = await authorizer.authorize({ user, verb, isResourceRequest: false, ...none, path });
    if (authorization.decision === "allow") return undefined;
    if (authorization.error !== undefined) return textResponse(500, "Internal Server Error: authorization failed\n");
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
