/** Authenticators of ID tokens of OpenID Connect issuers and of tokens that a webhook reviews. */
import type { TokenReviewStatus } from "../../api/authentication/token-review.ts";
import { anonymousAuthenticator } from "../../auth/authn/anonymous.ts";
import { JWT_ALGORITHMS } from "../../auth/authn/jwt/algorithms.ts";
import { parseAuthenticationConfiguration } from "../../auth/authn/jwt/authentication-configuration.ts";
import { type CompiledIssuer, compileIssuer } from "../../auth/authn/jwt/compile-issuer.ts";
import { fetcher } from "../../auth/authn/jwt/fetcher.ts";
import { jwtAuthenticator } from "../../auth/authn/jwt/jwt-authenticator.ts";
import { type TokenAuthenticator, unionTokens } from "../../auth/authn/token/bearer-token.ts";
import { cacheTokens, type TokenCacheObserver } from "../../auth/authn/token/token-cache.ts";
import { tokenWebhookAuthenticator } from "../../auth/authn/token/token-webhook.ts";
import type { Authenticator } from "../../auth/user.ts";
import { createReviewClient } from "../../auth/webhook/review-client.ts";
import type { Connector } from "../../client/transport/connector.ts";
import { renderFieldError } from "../../schema/validation/field-error.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AuthenticationConfig, OidcConfig, TokenWebhookConfig } from "../config/config.ts";
import type { DynamicFile } from "../config/dynamic-file.ts";
import { CONFIGURATION_BYTES_MAX } from "../config/flag-file.ts";
import type { AttemptObserver } from "./attempts.ts";

export interface TokenAuthenticatorsDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** The audiences that this server accepts. */
  readonly audiences: readonly string[];
  readonly observe?: TokenAuthenticatorsObserver | undefined;
  readonly attempts: AttemptObserver;
  /** How to connect to the webhook; undefined: directly. */
  readonly connector?: Connector | undefined;
  loadFile(file: DynamicFile): Promise<void>;
  addResource(resource: AsyncDisposable): void;
}

export interface TokenAuthenticatorsObserver {
  readonly cache: TokenCacheObserver;
  /** Called after the verification of a token of an issuer. */
  tokenVerified(issuerUrl: string, result: "success" | "failure", milliseconds: number): void;
  /** Called after the configuration was loaded or reloaded. */
  configurationLoaded(succeeded: boolean, content: string, isReload: boolean): void;
}

export interface TokenAuthenticators {
  readonly authenticators: readonly TokenAuthenticator[];
  /** The authenticator of anonymous requests; undefined when they are not allowed. */
  readonly anonymous: Authenticator | undefined;
}

/** As in Kubernetes: a revoked token stays valid for at most this time. */
const CACHE_MS = 10_000;
const FETCH_TIMEOUT_MS = 30_000;

/** Throws for invalid flags and files; the error names them. */
export async function openTokenAuthenticators(
  config: AuthenticationConfig,
  deps: TokenAuthenticatorsDeps,
): Promise<TokenAuthenticators> {
  const { structured, oidc, webhook } = config;
  let anonymous = config.anonymous ? anonymousAuthenticator() : undefined;
  let jwtAuthenticators: TokenAuthenticator = unionTokens([]);
  const useIssuers = (issuers: readonly CompiledIssuer[]): void => {
    jwtAuthenticators = issuers.length === 0 ? unionTokens([]) : jwtTokens(issuers, deps);
  };
  if (oidc !== undefined) {
    const apply = (ca?: string): void => useIssuers([issuerFromFlags(oidc, config.serviceAccounts.issuers, ca)]);
    if (oidc.caFile === undefined) apply();
    else await deps.loadFile({ flag: "--oidc-ca-file", path: oidc.caFile, apply });
  }
  if (structured !== undefined) {
    const { file: path, anonymousForbidden, anonymousRefused } = structured;
    const ownIssuers = config.serviceAccounts.issuers;
    let isReload = false;
    const apply = (text: string): void => {
      try {
        const found = parseAuthenticationConfiguration(path, text, {
          ownIssuers,
          anonymousForbidden,
        });
        useIssuers(found.issuers);
        const { enabled, paths } = found.anonymous ?? { enabled: config.anonymous, paths: undefined };
        anonymous = enabled && !anonymousRefused ? anonymousAuthenticator({ paths }) : undefined;
        deps.observe?.configurationLoaded(true, text, isReload);
      } catch (error) {
        deps.observe?.configurationLoaded(false, text, isReload);
        throw error;
      } finally {
        isReload = true;
      }
    };
    await deps.loadFile({ flag: "--authentication-config", path, bytesMax: CONFIGURATION_BYTES_MAX, apply });
  }
  return {
    authenticators: [
      // A reload of the file replaces jwtAuthenticators.
      ...(oidc === undefined && structured === undefined
        ? []
        : [((token, audiences) => jwtAuthenticators(token, audiences)) satisfies TokenAuthenticator]),
      ...(webhook === undefined ? [] : [deps.attempts.tokens("webhook", await webhookTokens(webhook, deps))]),
    ],
    anonymous: structured === undefined ? anonymous : async (credentials) => await anonymous?.(credentials),
  };
}

function jwtTokens(issuers: readonly CompiledIssuer[], deps: TokenAuthenticatorsDeps): TokenAuthenticator {
  const { clock, random, audiences, observe, attempts } = deps;
  const authenticators = issuers.map((issuer) => {
    const authenticator = jwtAuthenticator({
      ...fetcher({ ca: issuer.certificateAuthority, timeoutMs: FETCH_TIMEOUT_MS, clock }),
      issuer,
      audiences,
      clock,
      random,
      observe: observe === undefined ? undefined : (...seen) => observe.tokenVerified(issuer.url, ...seen),
    });
    return attempts.tokens(`JWT issuer ${issuer.url}`, authenticator);
  });
  return cacheTokens(unionTokens(authenticators), {
    audiences,
    clock,
    successTtlMs: CACHE_MS,
    failureTtlMs: 0,
    observe: observe?.cache,
  });
}

/** The --oidc-* flags as an issuer of an AuthenticationConfiguration. */
function issuerFromFlags(oidc: OidcConfig, ownIssuers: readonly string[], ca: string | undefined): CompiledIssuer {
  const { issuerUrl, usernameClaim, groupsClaim } = oidc;
  const required = Object.entries(oidc.requiredClaims).sort(([a], [b]) => (a < b ? -1 : 1));
  const algorithms = JWT_ALGORITHMS.filter((each) => oidc.signingAlgorithms.includes(each));
  const { issuer, errors } = compileIssuer(
    {
      issuer: { url: issuerUrl, audiences: [oidc.clientId], ...(ca === undefined ? {} : { certificateAuthority: ca }) },
      claimValidationRules: required.map(([claim, requiredValue]) => ({ claim, requiredValue })),
      claimMappings: {
        username: { claim: usernameClaim, prefix: usernamePrefix(oidc) },
        ...(groupsClaim === "" ? {} : { groups: { claim: groupsClaim, prefix: oidc.groupsPrefix } }),
      },
    },
    "oidc",
    ownIssuers,
    algorithms,
  );
  if (issuer !== undefined) return issuer;
  const messages = errors.map((error) => `${error.field.replace(/^oidc\./, "")}: ${renderFieldError(error)}`);
  throw new Error(`Cannot use --oidc-issuer-url="${issuerUrl}": ${messages.join("; ")}`);
}

/** Without a prefix, usernames of different issuers could be equal; email addresses are unique. */
function usernamePrefix({ issuerUrl, usernameClaim, usernamePrefix: prefix }: OidcConfig): string {
  if (prefix === "-") return "";
  return prefix === "" && usernameClaim !== "email" ? `${issuerUrl}#` : prefix;
}

async function webhookTokens(webhook: TokenWebhookConfig, deps: TokenAuthenticatorsDeps): Promise<TokenAuthenticator> {
  const { clock, random, audiences, observe, addResource, connector } = deps;
  const flag = "--authentication-token-webhook-config-file";
  const apiVersion = `authentication.k8s.io/${webhook.version}`;
  const client = await createReviewClient(
    { flag, path: webhook.file, apiVersion, kind: "TokenReview" },
    clock,
    connector,
  );
  addResource(client);
  const review = async (spec: object): Promise<TokenReviewStatus> => (await client.review(spec)) as TokenReviewStatus;
  const tokens = tokenWebhookAuthenticator({ review, audiences, clock, random });
  const { cacheMs } = webhook;
  return cacheTokens(tokens, {
    audiences,
    clock,
    successTtlMs: cacheMs,
    failureTtlMs: cacheMs,
    observe: observe?.cache,
  });
}
