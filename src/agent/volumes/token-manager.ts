/** Tokens of service accounts for the pods of the node, each asked for once and renewed before it expires. */
import type { TokenRequest } from "../../api/authentication/token-request.ts";
import type { Pod } from "../../api/core/pod.ts";
import type { ServiceAccountTokenProjection } from "../../api/core/volume.ts";
import type { Clock } from "../../std/clock.ts";
import { podName, podNamespace, podUid } from "../pods/pod-fields.ts";

export interface TokenRequestSource {
  /** Resolves with the answer. Rejects as the API server, or what is between, does. */
  requestToken(namespace: string, account: string, request: TokenRequest): Promise<TokenRequest>;
}

export interface TokenManagerOptions {
  readonly source: TokenRequestSource;
  readonly clock: Clock;
}

export type TokenWish = Partial<ServiceAccountTokenProjection>;

export interface Grant {
  readonly token: string;
  /** RFC 3339 */
  readonly expirationTimestamp: string;
}

interface Known extends Grant {
  readonly renewAtMs: number;
  readonly expiresAtMs: number;
}

/** What Kubernetes asks for where the pod does not say; also the server's sign that the token may be extended. */
const DEFAULT_SECONDS = 3607;
const RENEW_AFTER = 0.8;
/** After a renewal that failed. */
const RETRY_MS = 10_000;
/** However long a token lives, it is renewed daily. */
const AGE_MAX_MS = 24 * 3_600_000;

export class TokenManager {
  readonly #options: TokenManagerOptions;
  /** By pod, then by what is asked for; a pod's entry goes with `forget`. */
  readonly #known = new Map<string, Map<string, Known>>();

  constructor(options: TokenManagerOptions) {
    this.#options = options;
  }

  /** Rejects when there is no token that is still good and none can be had. */
  async token(pod: Pod, wanted: TokenWish): Promise<string> {
    return (await this.grant(pod, wanted)).token;
  }

  /** The same with the time when it expires. */
  async grant(pod: Pod, wanted: TokenWish): Promise<Grant> {
    const { clock } = this.#options;
    const own = this.#known.get(podUid(pod)) ?? new Map<string, Known>();
    this.#known.set(podUid(pod), own);
    const key = JSON.stringify([wanted.audience ?? "", wanted.expirationSeconds ?? DEFAULT_SECONDS]);
    const known = own.get(key);
    if (known !== undefined && clock.now() < Math.min(known.renewAtMs, known.expiresAtMs)) return known;
    try {
      const renewed = await this.#request(pod, wanted);
      own.set(key, renewed);
      return renewed;
    } catch (error) {
      if (known !== undefined) own.set(key, { ...known, renewAtMs: clock.now() + RETRY_MS });
      // Whatever is wrong with the server may pass before the token does.
      if (known !== undefined && clock.now() < known.expiresAtMs) return known;
      throw new Error(`failed to fetch token: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }

  /** When some token of the pod is to be renewed; infinity when it has none. */
  renewAtMs(uid: string): number {
    const own = this.#known.get(uid);
    return own === undefined ? Number.POSITIVE_INFINITY : Math.min(...[...own.values()].map((each) => each.renewAtMs));
  }

  forget(uid: string): void {
    this.#known.delete(uid);
  }

  async #request(pod: Pod, wanted: TokenWish): Promise<Known> {
    const { source, clock } = this.#options;
    const askedAtMs = clock.now();
    const answer = await source.requestToken(podNamespace(pod), pod.spec?.serviceAccountName ?? "default", {
      spec: {
        audiences: wanted.audience ? [wanted.audience] : [],
        expirationSeconds: wanted.expirationSeconds ?? DEFAULT_SECONDS,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name: podName(pod), uid: podUid(pod) },
      },
    });
    const { token = "", expirationTimestamp = "" } = answer.status ?? {};
    const expiresAtMs = Date.parse(expirationTimestamp);
    if (token === "" || Number.isNaN(expiresAtMs)) throw new Error("the answer holds no token");
    const lifeMs = Math.min((expiresAtMs - askedAtMs) * RENEW_AFTER, AGE_MAX_MS);
    return { token, expirationTimestamp, renewAtMs: askedAtMs + lifeMs, expiresAtMs };
  }
}
