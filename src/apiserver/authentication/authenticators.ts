/** The authenticators that the configuration enables, in Kubernetes' order. */
import type { Secret } from "../../api/core/secret/schema.ts";
import { anonymousAuthenticator } from "../../auth/authn/anonymous.ts";
import { InvalidCredentialsError } from "../../auth/authn/invalid-credentials-error.ts";
import { type RequestHeaderAuthenticator, requestHeaderAuthenticator } from "../../auth/authn/request-header.ts";
import {
  BearerToken,
  bearerAuthenticator,
  type TokenAuthenticator,
  type TokenUser,
  unionTokens,
} from "../../auth/authn/token/bearer-token.ts";
import { bootstrapTokenAuthenticator } from "../../auth/authn/token/bootstrap-token.ts";
import { createStaticTokens } from "../../auth/authn/token/static-tokens.ts";
import { parseTokenFile } from "../../auth/authn/token/token-file.ts";
import { asAuthenticated, unionAuthenticator } from "../../auth/authn/union.ts";
import { type X509Authenticator, x509Authenticator } from "../../auth/authn/x509/x509.ts";
import {
  type FindBound,
  type ServiceAccountTokenOptions,
  serviceAccountAuthenticator,
} from "../../auth/service-account/authenticator.ts";
import type { LegacyTokenClaims } from "../../auth/service-account/claims.ts";
import type { TokenIssuer } from "../../auth/service-account/issuer.ts";
import type { VerificationKey } from "../../auth/service-account/keys.ts";
import type { Authenticator, UserInfo } from "../../auth/user.ts";
import type { Connector } from "../../client/transport/connector.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type AuthenticationConfig, DEFAULT_ISSUER, type RequestHeaderConfig } from "../config/config.ts";
import { type DynamicFile, loadDynamicFile } from "../config/dynamic-file.ts";
import type { AuthenticationObserver } from "../metrics/authentication-metrics.ts";
import { type AttemptObserver, unobserved } from "./attempts.ts";
import { openServiceAccountKeys } from "./service-account-keys.ts";
import type { TokenAuthenticators, TokenAuthenticatorsDeps } from "./token-authenticators.ts";

export interface Authenticators extends AsyncDisposable {
  readonly authenticate: Authenticator;
  /** Creates a random token for a component of this process. */
  loopbackToken(user: UserInfo): string;
  readonly clientAuthorities: ClientAuthorities;
  readonly reviewToken: ReviewToken;
  readonly serviceAccounts: ServiceAccountTokens;
}

/** The CAs of client certificates, with the current content of their files. */
export interface ClientAuthorities {
  /** --client-ca-file: PEM; undefined when client certificates do not authenticate users. */
  readonly clientCa: () => string | undefined;
  /** --requestheader-client-ca-file: the CA of front proxies and the headers that they set. */
  readonly requestHeader: () => (RequestHeaderConfig & { readonly ca: string }) | undefined;
  /** Registers a callback for changes of the files. */
  onChange(callback: () => void): void;
}

/** Authenticates a token for the audiences; without audiences, for those of this server. */
export type ReviewToken = (token: string, audiences: readonly string[]) => Promise<TokenUser | { error: string }>;

export interface ServiceAccountTokens {
  /** The claim `iss` of issued tokens. */
  readonly issuerName: string;
  readonly issuer: TokenIssuer;
  /** The audiences that this server accepts. */
  readonly audiences: readonly string[];
  /** The published verification keys. */
  keys(): Promise<readonly VerificationKey[]>;
  /** The maximum validity of tokens; undefined: no maximum. */
  readonly maxSeconds: number | undefined;
  /** Signs a token without expiration, for a secret; undefined with an external signer. */
  readonly signLegacy: ((claims: LegacyTokenClaims) => Promise<string>) | undefined;
}

export interface AuthenticatorsDeps extends Pick<ServiceAccountTokenOptions, "recordLastUsed"> {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Finds the objects that tokens are bound to. Not called before the first request. */
  readonly findBoundObject: FindBound;
  readonly observe?: AuthenticationObserver | undefined;
  /** Observes each authenticator; the server observes none. */
  readonly attempts?: AttemptObserver | undefined;
  /** How to connect to the token webhook; undefined: directly. */
  readonly connector?: Connector | undefined;
}

/** Throws for a file that cannot be read or is invalid; the error names the flag and the file. */
export async function openAuthenticators(
  config: AuthenticationConfig,
  deps: AuthenticatorsDeps,
): Promise<Authenticators> {
  await using owned = new AsyncDisposableStack();
  const follow = async (file: DynamicFile): Promise<void> => void owned.use(await loadDynamicFile(file, deps));
  const certificates = await certificateAuthenticators(config, deps, follow);
  const { issuers, lookup } = config.serviceAccounts;
  const audiences = config.serviceAccounts.audiences.length > 0 ? config.serviceAccounts.audiences : issuers;
  const staticTokens = createStaticTokens(audiences);
  if (config.tokenFile !== undefined) {
    const path = config.tokenFile;
    await follow({
      flag: "--token-auth-file",
      path,
      apply: (text) => staticTokens.setRows(parseTokenFile(path, text)),
    });
  }
  const issuerName = issuers[0] ?? DEFAULT_ISSUER;
  const keys = owned.use(
    await openServiceAccountKeys(config.serviceAccounts, issuerName, {
      clock: deps.clock,
      observe: deps.observe?.signer,
      loadFile: follow,
    }),
  );
  const { clock, random, observe, recordLastUsed, findBoundObject, attempts = unobserved } = deps;
  const addResource = (resource: AsyncDisposable): void => void owned.use(resource);
  const external = await openExternalAuthenticators(config, {
    ...{ clock, random, audiences, observe, addResource, attempts },
    connector: deps.connector,
    loadFile: follow,
  });
  const findSecret = async (namespace: string, name: string): Promise<Secret | undefined> =>
    await findBoundObject({ kind: "Secret", namespace, name });
  const tokens = unionTokens([
    attempts.tokens("token file", staticTokens.authenticate),
    attempts.tokens(
      "service account",
      serviceAccountAuthenticator({
        ...{ issuers, audiences, lookUpSecrets: lookup, find: findBoundObject, clock, recordLastUsed },
        keys: keys.verificationKeys,
        keysVersion: keys.version,
        count: observe?.used,
      }),
    ),
    ...(config.bootstrapTokens
      ? [attempts.tokens("bootstrap token", bootstrapTokenAuthenticator({ find: findSecret, audiences, clock }))]
      : []),
    ...external.authenticators,
  ]);
  const authenticators = [...certificates.authenticators, bearerAuthenticator(tokens, audiences)];
  const disposal = owned.move();
  return {
    authenticate: unionAuthenticator(authenticators, external.anonymous),
    loopbackToken: (user) => staticTokens.issue(user),
    clientAuthorities: certificates.authorities,
    reviewToken: createTokenReviewer(tokens, audiences),
    serviceAccounts: {
      issuerName,
      issuer: keys.issuer,
      audiences,
      keys: keys.publishedKeys,
      maxSeconds: keys.maxTokenSeconds,
      signLegacy: keys.signLegacy,
    },
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

/** Request headers come first: the certificate of a front proxy may be valid for a user as well. */
async function certificateAuthenticators(
  { clientCaFile, certificateUids, requestHeader }: AuthenticationConfig,
  { clock, observe, attempts = unobserved }: AuthenticatorsDeps,
  follow: (file: DynamicFile) => Promise<void>,
): Promise<{ readonly authenticators: readonly Authenticator[]; readonly authorities: ClientAuthorities }> {
  let clients: { readonly x509: X509Authenticator; readonly ca: string } | undefined;
  let proxies: { readonly headers: RequestHeaderAuthenticator; readonly ca: string } | undefined;
  const listeners: (() => void)[] = [];
  const notifyListeners = (): void => {
    for (const listener of listeners) listener();
  };
  if (requestHeader !== undefined) {
    const { caFile: path, allowedNames } = requestHeader;
    const apply = (ca: string): void => {
      proxies?.headers.setAuthorities(ca);
      const options = { caPem: ca, clock, allowedNames, names: requestHeader };
      proxies = { headers: proxies?.headers ?? requestHeaderAuthenticator(options), ca };
      notifyListeners();
    };
    await follow({ flag: "--requestheader-client-ca-file", path, apply });
  }
  if (clientCaFile !== undefined) {
    const apply = (ca: string): void => {
      clients?.x509.setAuthorities(ca);
      const options = { caPem: ca, clock, allowUid: certificateUids, observeRemaining: observe?.certificateLasts };
      clients = { x509: clients?.x509 ?? x509Authenticator(options), ca };
      notifyListeners();
    };
    await follow({ flag: "--client-ca-file", path: clientCaFile, apply });
  }
  return {
    authenticators: [
      ...(proxies === undefined ? [] : [attempts.requests("request headers", proxies.headers.authenticate)]),
      ...(clients === undefined ? [] : [attempts.requests("client certificate", clients.x509.authenticate)]),
    ],
    authorities: {
      clientCa: () => clients?.ca,
      requestHeader: () =>
        requestHeader === undefined || proxies === undefined ? undefined : { ...requestHeader, ca: proxies.ca },
      onChange: (listener) => void listeners.push(listener),
    },
  };
}

function createTokenReviewer(tokens: TokenAuthenticator, own: readonly string[]): ReviewToken {
  return async (text, named) => {
    try {
      const found = await tokens(new BearerToken(text), named.length === 0 ? own : named);
      return found === undefined ? { error: "invalid bearer token" } : { ...found, user: asAuthenticated(found.user) };
    } catch (error) {
      if (error instanceof InvalidCredentialsError) return { error: `[invalid bearer token, ${error.message}]` };
      throw error;
    }
  };
}

/** Most servers have none of these, and do not load their code. */
async function openExternalAuthenticators(
  config: AuthenticationConfig,
  deps: TokenAuthenticatorsDeps,
): Promise<TokenAuthenticators> {
  const { structured, oidc, webhook } = config;
  if (structured === undefined && oidc === undefined && webhook === undefined) {
    return { authenticators: [], anonymous: config.anonymous ? anonymousAuthenticator() : undefined };
  }
  const { openTokenAuthenticators } = await import("./token-authenticators.ts");
  return await openTokenAuthenticators(config, deps);
}
