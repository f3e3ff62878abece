/** Tokens of service accounts for the pods of the node, each asked for once and renewed before it expires. */
import type { TokenRequest } from "../../../api/authentication/token-request.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ServiceAccountTokenProjection } from "../../../api/core/volume/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { podName, podNamespace, podUid } from "../../pods/pod-fields.ts";

export interface TokenRequestSource {
  /** Resolves with the answer. Rejects as the API server, or what is between, does. */
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
 * Times by the monotonic clock, which nobody sets, and by the time of day, which goes on while the machine sleeps;
 * infinity where the time of day cannot be right.
 */
interface Deadline {
  readonly monotonic: number;
  readonly now: number;
}

interface CachedToken extends IssuedToken {
  readonly renewal: Deadline;
  readonly expiry: Deadline;
}

/** What Kubernetes asks for where the pod does not say; also the server's sign that the token may be extended. */
const DEFAULT_SECONDS = 3607;
const RENEW_AFTER = 0.8;
/** After a renewal that failed. */
const RETRY_MS = 10_000;
/** After a token that seems to have expired: it was kept while the server was away, or the node's clock is wrong. */
const EXPIRED_RETRY_MS = 60_000;
/** Clocks of server and node may differ by this much. */
const SKEW_MS = 60_000;
/** However long a token lives, it is renewed daily. */
const AGE_MAX_MS = 24 * 3_600_000;

export class TokenManager {
  readonly #options: TokenManagerOptions;
  /** By pod, then by what is asked for; a pod's entry goes with `forget`. */
  readonly #tokens = new Map<string, Map<string, CachedToken>>();

  constructor(options: TokenManagerOptions) {
    this.#options = options;
  }

  /** Rejects when there is no token that is still good and none can be had. */
  async getToken(pod: Pod, wanted: TokenOptions): Promise<string> {
    return (await this.getIssuedToken(pod, wanted)).token;
  }

  /** The same with the time when it expires. */
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
      // Whatever is wrong with the server may pass before the token does.
      if (known !== undefined && !this.#isPast(known.expiry)) return known;
      throw new Error(`failed to fetch token: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }

  /** How long until some token of the pod is to be renewed; infinity when it has none. */
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
    const answer = await source.requestToken(podNamespace(pod), pod.spec?.serviceAccountName ?? "default", {
      spec: {
        audiences: wanted.audience ? [wanted.audience] : [],
        expirationSeconds: seconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name: podName(pod), uid: podUid(pod) },
      },
    });
    const { token = "", expirationTimestamp = "" } = answer.status ?? {};
    const expiresAtMs = Date.parse(expirationTimestamp);
    if (token === "" || Number.isNaN(expiresAtMs)) throw new Error("the answer holds no token");
    const leftMs = expiresAtMs - requestedAt.now;
    const lifeMs = (parseLifetimeSeconds(token) ?? seconds) * 1000;
    // A clock by which the token has expired, or lives longer than tokens do, says nothing.
    const isPlausible = leftMs > 0 && leftMs <= lifeMs + SKEW_MS;
    const goodMs = isPlausible ? leftMs : lifeMs;
    const renewMs = leftMs > 0 ? Math.min(goodMs * RENEW_AFTER, AGE_MAX_MS) : EXPIRED_RETRY_MS;
    const after = (ms: number): Deadline => ({
      monotonic: requestedAt.monotonic + ms,
      now: isPlausible ? requestedAt.now + ms : Number.POSITIVE_INFINITY,
    });
    return { token, expirationTimestamp, renewal: after(renewMs), expiry: after(goodMs) };
  }
}

/** For how long a token was issued, as it says itself; undefined for one that is no JWT. */
function parseLifetimeSeconds(token: string): number | undefined {
  try {
    const { iat, exp } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return typeof iat === "number" && typeof exp === "number" ? exp - iat : undefined;
  } catch {
    return undefined;
  }
}
