/** Bearer tokens: how clients send them, and the interface of their authenticators. */
import { hash } from "node:crypto";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import type { Authenticator, Credentials, UserInfo } from "../../user.ts";
import { firstResult, InvalidCredentialsError } from "../invalid-credentials-error.ts";

/** A token as the client sent it. */
export class BearerToken {
  readonly text: string;
  readonly #credentials: RequestAnnotations | undefined;
  #digest: string | undefined;

  constructor(text: string, credentials?: RequestAnnotations) {
    this.text = text;
    this.#credentials = credentials;
  }

  /** Lookups use the digest, so that their duration does not reveal known tokens. */
  get digest(): string {
    this.#digest ??= hash("sha256", this.text, "base64");
    return this.#digest;
  }

  /** Adds a warning to the response, if there is one. */
  warn(text: string): void {
    this.#credentials?.warn?.(text);
  }

  /** Adds an annotation to the audit event, if there is one. */
  annotate(key: string, value: string): void {
    this.#credentials?.annotate?.(key, value);
  }
}

type RequestAnnotations = Pick<Credentials, "warn" | "annotate">;

export interface TokenUser {
  readonly user: UserInfo;
  /** The requested audiences that the token is valid for. */
  readonly audiences: readonly string[];
}

/**
 * Undefined for tokens of another type, or for none of these audiences. Throws an `InvalidCredentialsError` for an
 * invalid token.
 */
export type TokenAuthenticator = (
  token: BearerToken,
  audiences: readonly string[],
) => MaybePromise<TokenUser | undefined>;

/** No valid token is longer. */
const TOKEN_MAX = 65_536;
/** The WebSocket subprotocol by which browsers, which cannot set headers, send a token. */
const PROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io.";

/** Whether a WebSocket subprotocol carries a token, which must not leave this server. */
export function isTokenProtocol(protocol: string): boolean {
  return protocol.startsWith(PROTOCOL_PREFIX);
}

/** Calls the authenticators in order and returns the first user; without one, fails with all errors there were. */
export function unionTokens(authenticators: readonly TokenAuthenticator[]): TokenAuthenticator {
  return (token, audiences) => firstResult(authenticators, (authenticate) => authenticate(token, audiences));
}

/** Authenticates the token in the `Authorization` header or in the WebSocket subprotocols. */
export function bearerAuthenticator(tokens: TokenAuthenticator, audiences: readonly string[]): Authenticator {
  return (credentials) => {
    const text = bearerToken(credentials.authorization) ?? protocolToken(credentials);
    if (text === undefined) return undefined;
    if (text.length > TOKEN_MAX) throw new InvalidCredentialsError("the bearer token is too long");
    return andThen(tokens(new BearerToken(text, credentials), audiences), (found) => {
      if (found === undefined) throw new InvalidCredentialsError("invalid bearer token");
      return found.user;
    });
  };
}

/** The token of an `Authorization: Bearer …` header; undefined for another scheme or without a token. */
export function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  // The usual format; the expression below gives the same result, more slowly.
  if (authorization.startsWith("Bearer ") && hasNoSuffix(authorization)) {
    return authorization.slice(7);
  }
  // Text after the token is ignored, and a second space means an empty token, as in Kubernetes.
  return /^bearer ([^ ]+)/i.exec(authorization.trim())?.[1];
}

/** Whether the token is the rest of the header. */
function hasNoSuffix(authorization: string): boolean {
  const last = authorization.charCodeAt(authorization.length - 1);
  return last > 0x20 && last < 0x7f && authorization.indexOf(" ", 7) < 0;
}

function protocolToken(credentials: Credentials): string | undefined {
  if (credentials.header?.("upgrade")?.toLowerCase() !== "websocket") return undefined;
  const protocols = (credentials.header("sec-websocket-protocol") ?? "").split(",").map((each) => each.trim());
  const [first, ...more] = protocols.filter((each) => each.startsWith(PROTOCOL_PREFIX));
  if (first === undefined) return undefined;
  const encoded = first.slice(PROTOCOL_PREFIX.length);
  if (more.length > 0) throw new InvalidCredentialsError("multiple base64.bearer.authorization tokens specified");
  if (protocols.length < 2) throw new InvalidCredentialsError("missing additional subprotocol");
  if (!/^[\w-]+$/.test(encoded)) throw new InvalidCredentialsError("the token in the subprotocol is not base64url");
  return Buffer.from(encoded, "base64url").toString();
}
