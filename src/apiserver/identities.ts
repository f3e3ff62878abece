/**
 * Who may be who: client certificates, tokens of a file, of service accounts and of this process' own components, and
 * strangers.
 */
import { unauthorized } from "../api/status.ts";
import { anonymousAuthenticator } from "../auth/authn/anonymous.ts";
import { bearerToken, tokenAuthenticator } from "../auth/authn/token.ts";
import { parseTokenFile } from "../auth/authn/token-file.ts";
import { authenticated, unionAuthenticator } from "../auth/authn/union.ts";
import { x509Authenticator } from "../auth/authn/x509.ts";
import {
  type AccountTokens,
  accountTokens,
  type FindBound,
  type Identified,
  TokenRefusal,
} from "../auth/service-account/authenticator.ts";
import { type TokenIssuer, tokenIssuer } from "../auth/service-account/issuer.ts";
import type { VerificationKey } from "../auth/service-account/keys.ts";
import type { Authenticator, UserInfo } from "../auth/user.ts";
import type { Clock } from "../std/clock.ts";
import { type AuthenticationConfig, DEFAULT_ISSUER } from "./config.ts";
import { flagFile } from "./flag-file.ts";
import { serviceAccountKeys } from "./service-account-keys.ts";

export interface Identities {
  readonly authenticate: Authenticator;
  /** A random token that stands for a component of this process. */
  loopbackToken(user: UserInfo): string;
  /** PEM; clients that connect are told of it. */
  readonly clientCa: string | undefined;
  readonly reviewToken: ReviewToken;
  readonly serviceAccounts: ServiceAccountIdentities;
}

/** Whose the token is and which of the audiences it is for, or why it is nobody's. None named: this server. */
export type ReviewToken = (token: string, audiences: readonly string[]) => Promise<Identified | { error: string }>;

export interface ServiceAccountIdentities {
  /** The name in tokens of who issues them. */
  readonly issuerName: string;
  readonly issuer: TokenIssuer;
  /** Whom this server is, to tokens. */
  readonly audiences: readonly string[];
  keys(): Promise<readonly VerificationKey[]>;
}

/** `find` is asked once requests come. Throws, naming the file, for one that cannot be read or makes no sense. */
export async function identitiesOf(config: AuthenticationConfig, clock: Clock, find: FindBound): Promise<Identities> {
  const clientCa = await contentOf("--client-ca-file", config.clientCaFile);
  const tokens = tokenAuthenticator();
  const rows = (await contentOf("--token-auth-file", config.tokenFile)) ?? "";
  for (const { token, user } of parseTokenFile(config.tokenFile ?? "", rows)) tokens.add(token, user);
  const { issuers, lookup } = config.serviceAccounts;
  const audiences = config.serviceAccounts.audiences.length > 0 ? config.serviceAccounts.audiences : issuers;
  const keys = await serviceAccountKeys(config.serviceAccounts);
  const accounts = accountTokens({ issuers, audiences, keys: keys.verifying, lookup, find, clock });
  const authenticators = [
    ...(clientCa === undefined ? [] : [x509Authenticator({ caPem: clientCa, clock }).authenticate]),
    tokens.authenticate,
    accountAuthenticator(accounts, audiences),
  ];
  const issuerName = issuers[0] ?? DEFAULT_ISSUER;
  return {
    authenticate: unionAuthenticator(authenticators, config.anonymous ? anonymousAuthenticator() : undefined),
    loopbackToken: (user) => tokens.issue(user),
    clientCa,
    reviewToken: reviewer(tokens.find, accounts, audiences),
    serviceAccounts: { issuerName, issuer: tokenIssuer(issuerName, keys.signing), audiences, keys: keys.verifying },
  };
}

function accountAuthenticator(accounts: AccountTokens, audiences: readonly string[]): Authenticator {
  return async ({ authorization }) => {
    const token = bearerToken(authorization);
    if (token === undefined) return undefined;
    try {
      return (await accounts(token, audiences))?.user;
    } catch (error) {
      // Why is not for the bearer to learn.
      if (error instanceof TokenRefusal) throw unauthorized();
      throw error;
    }
  };
}

function reviewer(
  known: (token: string) => UserInfo | undefined,
  accounts: AccountTokens,
  own: readonly string[],
): ReviewToken {
  return async (token, named) => {
    const asked = named.length === 0 ? own : named;
    const user = known(token);
    // Tokens of a file are for this server and nobody else.
    const audiences = asked.filter((audience) => own.includes(audience));
    if (user !== undefined && audiences.length > 0) return { user: authenticated(user), audiences };
    try {
      const identified = await accounts(token, asked);
      if (identified !== undefined) return { ...identified, user: authenticated(identified.user) };
      return { error: "invalid bearer token" };
    } catch (error) {
      if (error instanceof TokenRefusal) return { error: `[invalid bearer token, ${error.message}]` };
      throw error;
    }
  };
}

/** Undefined when no file is named. */
async function contentOf(flag: string, path: string | undefined): Promise<string | undefined> {
  return path === undefined ? undefined : await flagFile(flag, path);
}
