/** Who may be who: every way to prove it that the configuration allows, in Kubernetes' order. */
import type { Secret } from "../../api/core/secret/schema.ts";
import { Refusal } from "../../auth/authn/invalid-credentials-error.ts";
import { type RequestHeaderAuthenticator, requestHeaderAuthenticator } from "../../auth/authn/request-header.ts";
import {
  BearerToken,
  bearerAuthenticator,
  type Identified,
  type TokenAuthenticator,
  unionTokens,
} from "../../auth/authn/token/bearer-token.ts";
import { bootstrapTokens } from "../../auth/authn/token/bootstrap-token.ts";
import { knownTokens } from "../../auth/authn/token/static-tokens.ts";
import { parseTokenFile } from "../../auth/authn/token/token-file.ts";
import { authenticated, unionAuthenticator } from "../../auth/authn/union.ts";
import { type X509Authenticator, x509Authenticator } from "../../auth/authn/x509/x509.ts";
import { type AccountTokenOptions, accountTokens, type FindBound } from "../../auth/service-account/authenticator.ts";
import type { LegacyIssued } from "../../auth/service-account/claims.ts";
import type { TokenIssuer } from "../../auth/service-account/issuer.ts";
import type { VerificationKey } from "../../auth/service-account/keys.ts";
import type { Authenticator, UserInfo } from "../../auth/user.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type AuthenticationConfig, DEFAULT_ISSUER, type RequestHeaderConfig } from "../config/config.ts";
import { type DynamicFile, loadDynamicFile } from "../config/dynamic-file.ts";
import type { AuthenticationObserver } from "../metrics/authentication-metrics.ts";
import { serviceAccountKeys } from "./service-account-keys.ts";
import { tokenIssuers } from "./token-authenticators.ts";

export interface Identities extends AsyncDisposable {
  readonly authenticate: Authenticator;
  /** A random token that stands for a component of this process. */
  loopbackToken(user: UserInfo): string;
  readonly authorities: Authorities;
  readonly reviewToken: ReviewToken;
  readonly serviceAccounts: ServiceAccountIdentities;
}

/** Whose client certificates are believed; what the files hold now. */
export interface Authorities {
  /** PEM; undefined where no certificates make users. */
  readonly clients: () => string | undefined;
  /** The authority of proxies in front, and what they are believed. */
  readonly proxies: () => (RequestHeaderConfig & { readonly ca: string }) | undefined;
  /** Called whenever one of them has changed. */
  follow(changed: () => void): void;
}

/** Whose the token is and which of the audiences it is for, or why it is nobody's. None named: this server. */
export type ReviewToken = (token: string, audiences: readonly string[]) => Promise<Identified | { error: string }>;

export interface ServiceAccountIdentities {
  /** The name in tokens of who issues them. */
  readonly issuerName: string;
  readonly issuer: TokenIssuer;
  /** Whom this server is, to tokens. */
  readonly audiences: readonly string[];
  /** Those that others are told of. */
  keys(): Promise<readonly VerificationKey[]>;
  /** Tokens last no longer; undefined: as long as is asked for. */
  readonly maxSeconds: number | undefined;
  /** A token without an end, for a secret; undefined where somebody else signs. */
  readonly signLegacy: ((claims: LegacyIssued) => Promise<string>) | undefined;
}

export interface IdentitiesDeps extends Pick<AccountTokenOptions, "used"> {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Asked once requests come. */
  readonly find: FindBound;
  readonly observe?: AuthenticationObserver | undefined;
}

/** Throws, naming flag and file, for one that cannot be read or makes no sense. */
export async function identitiesOf(config: AuthenticationConfig, deps: IdentitiesDeps): Promise<Identities> {
  await using owned = new AsyncDisposableStack();
  const follow = async (file: DynamicFile): Promise<void> => void owned.use(await loadDynamicFile(file, deps));
  const certificates = await certificateAuthenticators(config, deps, follow);
  const { issuers, lookup } = config.serviceAccounts;
  const audiences = config.serviceAccounts.audiences.length > 0 ? config.serviceAccounts.audiences : issuers;
  const known = knownTokens(audiences);
  if (config.tokenFile !== undefined) {
    const path = config.tokenFile;
    await follow({ flag: "--token-auth-file", path, apply: (text) => known.setRows(parseTokenFile(path, text)) });
  }
  const issuerName = issuers[0] ?? DEFAULT_ISSUER;
  const keys = owned.use(
    await serviceAccountKeys(config.serviceAccounts, issuerName, {
      clock: deps.clock,
      observe: deps.observe?.signer,
      follow,
    }),
  );
  const { clock, random, observe, used, find } = deps;
  const strangers = await tokenIssuers(config, {
    clock,
    random,
    audiences,
    observe,
    follow,
    own: (resource) => void owned.use(resource),
  });
  const findSecret = async (namespace: string, name: string): Promise<Secret | undefined> =>
    await find({ kind: "Secret", namespace, name });
  const tokens = unionTokens([
    known.authenticate,
    accountTokens({
      ...{ issuers, audiences, lookup, find, clock, used },
      keys: keys.verifying,
      keysVersion: keys.version,
      count: observe?.used,
    }),
    ...(config.bootstrapTokens ? [bootstrapTokens({ find: findSecret, audiences, clock })] : []),
    ...strangers.authenticators,
  ]);
  const authenticators = [...certificates.authenticators, bearerAuthenticator(tokens, audiences)];
  const disposal = owned.move();
  return {
    authenticate: unionAuthenticator(authenticators, strangers.anonymous),
    loopbackToken: (user) => known.issue(user),
    authorities: certificates.authorities,
    reviewToken: reviewer(tokens, audiences),
    serviceAccounts: {
      issuerName,
      issuer: keys.issuer,
      audiences,
      keys: keys.published,
      maxSeconds: keys.maxSeconds,
      signLegacy: keys.signLegacy,
    },
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

/** Proxies in front first: their own certificates may be good for users as well. */
async function certificateAuthenticators(
  { clientCaFile, certificateUids, requestHeader }: AuthenticationConfig,
  { clock, observe }: IdentitiesDeps,
  follow: (file: DynamicFile) => Promise<void>,
): Promise<{ readonly authenticators: readonly Authenticator[]; readonly authorities: Authorities }> {
  let clients: { readonly x509: X509Authenticator; readonly ca: string } | undefined;
  let proxies: { readonly headers: RequestHeaderAuthenticator; readonly ca: string } | undefined;
  const listeners: (() => void)[] = [];
  const changed = (): void => {
    for (const listener of listeners) listener();
  };
  if (requestHeader !== undefined) {
    const { caFile: path, allowedNames } = requestHeader;
    const apply = (ca: string): void => {
      proxies?.headers.setAuthorities(ca);
      const options = { caPem: ca, clock, allowedNames, names: requestHeader };
      proxies = { headers: proxies?.headers ?? requestHeaderAuthenticator(options), ca };
      changed();
    };
    await follow({ flag: "--requestheader-client-ca-file", path, apply });
  }
  if (clientCaFile !== undefined) {
    const apply = (ca: string): void => {
      clients?.x509.setAuthorities(ca);
      const options = { caPem: ca, clock, uids: certificateUids, lasts: observe?.certificateLasts };
      clients = { x509: clients?.x509 ?? x509Authenticator(options), ca };
      changed();
    };
    await follow({ flag: "--client-ca-file", path: clientCaFile, apply });
  }
  const authenticators = [proxies?.headers.authenticate, clients?.x509.authenticate];
  return {
    authenticators: authenticators.filter((each) => each !== undefined),
    authorities: {
      clients: () => clients?.ca,
      proxies: () =>
        requestHeader === undefined || proxies === undefined ? undefined : { ...requestHeader, ca: proxies.ca },
      follow: (listener) => void listeners.push(listener),
    },
  };
}

function reviewer(tokens: TokenAuthenticator, own: readonly string[]): ReviewToken {
  return async (text, named) => {
    try {
      const found = await tokens(new BearerToken(text), named.length === 0 ? own : named);
      return found === undefined ? { error: "invalid bearer token" } : { ...found, user: authenticated(found.user) };
    } catch (error) {
      if (error instanceof Refusal) return { error: `[invalid bearer token, ${error.message}]` };
      throw error;
    }
  };
}
