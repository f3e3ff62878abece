/** What all kinds of bearer tokens have in common: how they arrive, and how they are looked up. */
import { hash } from "node:crypto";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import type { Authenticator, Credentials, UserInfo } from "../../user.ts";
import { firstFound, Refusal } from "../invalid-credentials-error.ts";

/** A token as a client sent it. */
export class BearerToken {
  readonly text: string;
  readonly #credentials: Listener | undefined;
  #digest: string | undefined;

  constructor(text: string, credentials?: Listener) {
    this.text = text;
    this.#credentials = credentials;
  }

  /** Tokens are looked up by this: how long that takes tells nothing of the tokens there are. */
  get digest(): string {
    this.#digest ??= hash("sha256", this.text, "base64");
    return this.#digest;
  }

  /** Tells the client, where there is one that listens. */
  warn(text: string): void {
    this.#credentials?.warn?.(text);
  }

  /** Tells the audit log, where there is one. */
  annotate(key: string, value: string): void {
    this.#credentials?.annotate?.(key, value);
  }
}

type Listener = Pick<Credentials, "warn" | "annotate">;

export interface Identified {
  readonly user: UserInfo;
  /** Those asked for that the token is meant for. */
  readonly audiences: readonly string[];
}

/**
 * Undefined for what is no token of this sort, or for none of these audiences. Throws a `Refusal` for one that is not
 * good.
 */
export type TokenAuthenticator = (token: BearerToken, audiences: readonly string[]) => MaybePromise<Identified | undefined>;

/** No token is as long; parsing longer ones would be work for nothing. */
const TOKEN_MAX = 65_536;
/** How browsers, which cannot set headers, send a token along with a WebSocket. */
const PROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io.";

/** Asks in order and takes the first user; fails with every reason when there is none and one of them refuses. */
export function unionTokens(authenticators: readonly TokenAuthenticator[]): TokenAuthenticator {
  return (token, audiences) => firstFound(authenticators, (authenticate) => authenticate(token, audiences));
}

/** The bearer of a token in the `Authorization` header, or in the protocols of a WebSocket. */
export function bearerAuthenticator(tokens: TokenAuthenticator, audiences: readonly string[]): Authenticator {
  return (credentials) => {
    const text = bearerToken(credentials.authorization) ?? protocolToken(credentials);
    if (text === undefined) return undefined;
    if (text.length > TOKEN_MAX) throw new Refusal("the bearer token is too long");
    return andThen(tokens(new BearerToken(text, credentials), audiences), (found) => {
      if (found === undefined) throw new Refusal("invalid bearer token");
      return found.user;
    });
  };
}

/** The token of an `Authorization: Bearer …` header; undefined when it is another scheme or there is no token. */
export function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  // As nearly all clients write it; the expression below says the same, and takes longer.
  if (authorization.startsWith("Bearer ") && isWord(authorization)) {
    return authorization.slice(7);
  }
  // What follows the token is ignored, and a second space is an empty token, as in Kubernetes.
  return /^bearer ([^ ]+)/i.exec(authorization.trim())?.[1];
}

/** Whether nothing follows the token, not even space of some sort. */
function isWord(authorization: string): boolean {
  const last = authorization.charCodeAt(authorization.length - 1);
  return last > 0x20 && last < 0x7f && authorization.indexOf(" ", 7) < 0;
}

function protocolToken(credentials: Credentials): string | undefined {
  if (credentials.header?.("upgrade")?.toLowerCase() !== "websocket") return undefined;
  const protocols = (credentials.header("sec-websocket-protocol") ?? "").split(",").map((each) => each.trim());
  const [first, ...more] = protocols.filter((each) => each.startsWith(PROTOCOL_PREFIX));
  if (first === undefined) return undefined;
  const encoded = first.slice(PROTOCOL_PREFIX.length);
  if (more.length > 0) throw new Refusal("multiple base64.bearer.authorization tokens specified");
  if (protocols.length < 2) throw new Refusal("missing additional subprotocol");
  if (!/^[\w-]+$/.test(encoded)) throw new Refusal("the token among the protocols is not encoded in base64url");
  return Buffer.from(encoded, "base64url").toString();
}
