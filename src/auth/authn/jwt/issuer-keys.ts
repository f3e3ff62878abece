/** The keys of an issuer, by OpenID Connect's discovery: found when they are first needed, and looked for again. */
import { createPublicKey, type KeyObject } from "node:crypto";
import { Backoff } from "../../../std/time/backoff.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";

export interface IssuerKey {
  readonly keyId: string;
  readonly publicKey: KeyObject;
}

export interface IssuerKeysOptions {
  readonly issuerUrl: string;
  readonly discoveryUrl: string;
  /** The JSON at a URL. */
  readonly fetch: (url: string) => Promise<unknown>;
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** Tokens may name keys there are not, as often as somebody likes: that is looked into no more often than this. */
const LOOK_AGAIN_MS = 5_000;
const RETRY = { initialMs: 1_000, maxMs: 60_000, factor: 2, jitter: 0.2 };
const KEYS_MAX = 128;

export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  readonly #backoff: Backoff;
  #keys: readonly IssuerKey[] | undefined;
  #fetching: Promise<void> | undefined;
  /** On the monotonic clock: when it may be looked again. */
  #notBefore = Number.NEGATIVE_INFINITY;
  #failure: unknown;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
    this.#backoff = new Backoff(RETRY, options.random);
  }

  /** Keys that may have signed what names this key; all of them where it names none. Rejects when none can be had. */
  async find(keyId: string): Promise<readonly IssuerKey[]> {
    const known = this.#named(keyId);
    if (known.length > 0) return known;
    await this.refresh();
    if (this.#keys === undefined) throw this.#failure;
    return this.#named(keyId);
  }

  /** Looks for the keys anew, unless that was done a moment ago. */
  async refresh(): Promise<void> {
    if (this.#fetching === undefined && this.#options.clock.monotonic() < this.#notBefore) return;
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    await this.#fetching;
  }

  #named(keyId: string): readonly IssuerKey[] {
    const keys = this.#keys ?? [];
    return keyId === "" ? keys : keys.filter((key) => key.keyId === keyId || key.keyId === "");
  }

  async #fetch(): Promise<void> {
    const { clock } = this.#options;
    try {
      this.#keys = await this.#discover();
      this.#backoff.reset();
      this.#notBefore = clock.monotonic() + LOOK_AGAIN_MS;
    } catch (error) {
      // Keys known before are still good.
      this.#failure = error;
      this.#notBefore = clock.monotonic() + this.#backoff.next();
    }
  }

  async #discover(): Promise<readonly IssuerKey[]> {
    const { issuerUrl, discoveryUrl, fetch } = this.#options;
    const { issuer, jwks_uri: place } = membersOf(await fetch(discoveryUrl));
    if (issuer !== issuerUrl) {
      const said = JSON.stringify(issuer);
      throw new Error(
        `issuer did not match the issuer returned by provider, expected ${JSON.stringify(issuerUrl)} got ${said}`,
      );
    }
    if (typeof place !== "string" || URL.parse(place)?.protocol !== "https:") {
      throw new Error(`the document at ${discoveryUrl} names no keys at an https URL`);
    }
    const { keys } = membersOf(await fetch(place));
    if (!Array.isArray(keys)) throw new Error(`there are no keys at ${place}`);
    return keys.slice(0, KEYS_MAX).flatMap(keyOf);
  }
}

/** None for a key of a sort that no token is signed with. */
function keyOf(value: unknown): readonly IssuerKey[] {
  const { kty, kid = "", use = "sig", ...jwk } = membersOf(value);
  if ((kty !== "RSA" && kty !== "EC") || typeof kid !== "string" || use !== "sig") return [];
  try {
    const { n, e, crv, x, y } = jwk;
    return [{ keyId: kid, publicKey: createPublicKey({ key: { kty, n, e, crv, x, y } as object, format: "jwk" }) }];
  } catch {
    return [];
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
