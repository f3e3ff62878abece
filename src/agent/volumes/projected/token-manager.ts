/** Requests service account tokens for the node's pods, caches them and renews them before they expire. */
import type { TokenRequest } from "../../../api/authentication/token-request.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ServiceAccountTokenProjection } from "../../../api/core/volume/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { podName, podNamespace, podUid } from "../../pods/pod-fields.ts";

export interface TokenRequestSource {
  /** Creates a TokenRequest. Rejects with the API server's or the network's error. */
  requestToken(namespace: string, account: string, request: TokenRequest): Promise<TokenRequest>;
}

export interface TokenManagerOptions {
  readonly source: TokenRequestSource;
  readonly clock: Clock;
}

export type TokenOptions = Partial<ServiceAccountTokenProjection>;

export interface IssuedToken {
  readonly token: string;
  /** RFC 3339 */
  readonly expirationTimestamp: string;
}

/**
 * A time on the monotonic clock, which is never set, and by the time of day, which advances while the machine sleeps;
 * the latter is infinity when the clock is wrong.
 */
interface Deadline {
  readonly monotonic: number;
  readonly now: number;
}

interface CachedToken extends IssuedToken {
  readonly renewal: Deadline;
  readonly expiry: Deadline;
}

/** kubelet's default; the value by which the API server recognizes tokens that it may extend. */
const DEFAULT_SECONDS = 3607;
const RENEW_AFTER = 0.8;
/** After a failed renewal. */
const RETRY_MS = 10_000;
/** For a new token that looks expired: the node's clock is wrong. */
const EXPIRED_RETRY_MS = 60_000;
/** Tolerated difference between the clocks of server and node. */
const SKEW_MS = 60_000;
/** Tokens are renewed at least daily. */
const AGE_MAX_MS = 24 * 3_600_000;

export class TokenManager {
  readonly #options: TokenManagerOptions;
  /** By pod, then by audience and duration; `forget` removes a pod's. */
  readonly #tokens = new Map<string, Map<string, CachedToken>>();

  constructor(options: TokenManagerOptions) {
    this.#options = options;
  }

  /** Rejects when there is no valid token and the request for one fails. */
  async getToken(pod: Pod, wanted: TokenOptions): Promise<string> {
    return (await this.getIssuedToken(pod, wanted)).token;
  }

  /** The token with its expiry. */
  async getIssuedToken(pod: Pod, wanted: TokenOptions): Promise<IssuedToken> {
    const { clock } = this.#options;
    const own = this.#tokens.get(podUid(pod)) ?? new Map<string, CachedToken>();
    this.#tokens.set(podUid(pod), own);
    const key = JSON.stringify([wanted.audience ?? "", wanted.expirationSeconds ?? DEFAULT_SECONDS]);
    const known = own.get(key);
    if (known !== undefined && !this.#isPast(known.renewal) && !this.#isPast(known.expiry)) return known;
    try {
      const renewed = await this.#request(pod, wanted);
      own.set(key, renewed);
      return renewed;
    } catch (error) {
      const renewal = { monotonic: clock.monotonic() + RETRY_MS, now: clock.now() + RETRY_MS };
      if (known !== undefined) own.set(key, { ...known, renewal });
      // The cached token is valid: the server may recover before it expires.
      if (known !== undefined && !this.#isPast(known.expiry)) return known;
      throw new Error(`failed to fetch token: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }

  /** Milliseconds until the next renewal of a token of the pod; infinity when it has none. */
  renewInMs(uid: string): number {
    const { clock } = this.#options;
    const left = [...(this.#tokens.get(uid)?.values() ?? [])].flatMap(({ renewal }) => [
      renewal.monotonic - clock.monotonic(),
      renewal.now - clock.now(),
    ]);
    return Math.min(Number.POSITIVE_INFINITY, ...left);
  }

  #isPast({ monotonic, now }: Deadline): boolean {
    const { clock } = this.#options;
    return clock.monotonic() >= monotonic || clock.now() >= now;
  }

  forget(uid: string): void {
    this.#tokens.delete(uid);
  }

  async #request(pod: Pod, wanted: TokenOptions): Promise<CachedToken> {
    const { source, clock } = this.#options;
    const requestedAt: Deadline = { monotonic: clock.monotonic(), now: clock.now() };
    const seconds = wanted.expirationSeconds ?? DEFAULT_SECONDS;
    const response = await source.requestToken(podNamespace(pod), pod.spec?.serviceAccountName ?? "default", {
      spec: {
        audiences: wanted.audience ? [wanted.audience] : [],
        expirationSeconds: seconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name: podName(pod), uid: podUid(pod) },
      },
    });
    const { token = "", expirationTimestamp = "" } = response.status ?? {};
    const expiresAtMs = Date.parse(expirationTimestamp);
    if (token === "" || Number.isNaN(expiresAtMs)) throw new Error("the response has no token");
    const leftMs = expiresAtMs - requestedAt.now;
    const lifetimeMs = (parseLifetimeSeconds(token) ?? seconds) * 1000;
    // A clock by which the token has expired, or is valid for longer than issued, is wrong.
    const isPlausible = leftMs > 0 && leftMs <= lifetimeMs + SKEW_MS;
    const validMs = isPlausible ? leftMs : lifetimeMs;
    const renewMs = leftMs > 0 ? Math.min(validMs * RENEW_AFTER, AGE_MAX_MS) : EXPIRED_RETRY_MS;
    const after = (ms: number): Deadline => ({
      monotonic: requestedAt.monotonic + ms,
      now: isPlausible ? requestedAt.now + ms : Number.POSITIVE_INFINITY,
    });
    return { token, expirationTimestamp, renewal: after(renewMs), expiry: after(validMs) };
  }
}

/** The lifetime in a token's claims; undefined for a token that is no JWT. */
function parseLifetimeSeconds(token: string): number | undefined {
  try {
    const { iat, exp } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return typeof iat === "number" && typeof exp === "number" ? exp - iat : undefined;
  } catch {
    return undefined;
  }
}
