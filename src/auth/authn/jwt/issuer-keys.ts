/** The signing keys of an issuer, found by OpenID Connect discovery when a token first needs them. */
import type { RandomSource } from "../../../std/crypto/random.ts";
import { Backoff } from "../../../std/time/backoff.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { IssuerKey } from "./issuer-documents.ts";

export interface IssuerKeysOptions {
  readonly issuerUrl: string;
  readonly discoveryUrl: string;
  /** Returns the JSON value at a URL. */
  readonly fetch: (url: string) => Promise<unknown>;
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** Minimum interval between fetches, since tokens can name unknown keys. */
const REFRESH_INTERVAL_MS = 5_000;
const RETRY = { initialMs: 1_000, maxMs: 60_000, factor: 2, jitter: 0.2 };

export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  readonly #backoff: Backoff;
  #keys: readonly IssuerKey[] | undefined;
  #fetching: Promise<void> | undefined;
  /** The monotonic time of the next allowed fetch. */
  #notBefore = Number.NEGATIVE_INFINITY;
  #failure: unknown;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
    this.#backoff = new Backoff(RETRY, options.random);
  }

  /** The keys with this ID, or all keys if it is empty. Rejects if the keys cannot be fetched. */
  async find(keyId: string): Promise<readonly IssuerKey[]> {
    const keys = this.#keysWithId(keyId);
    if (keys.length > 0) return keys;
    await this.refresh();
    if (this.#keys === undefined) throw this.#failure;
    return this.#keysWithId(keyId);
  }

  /** Fetches the keys again, unless the last fetch was recent. */
  async refresh(): Promise<void> {
    if (this.#fetching === undefined && this.#options.clock.monotonic() < this.#notBefore) return;
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    await this.#fetching;
  }

  #keysWithId(keyId: string): readonly IssuerKey[] {
    const keys = this.#keys ?? [];
    return keyId === "" ? keys : keys.filter((key) => key.keyId === keyId || key.keyId === "");
  }

  async #fetch(): Promise<void> {
    const { clock } = this.#options;
    try {
      this.#keys = await this.#discover();
      this.#backoff.reset();
      this.#notBefore = clock.monotonic() + REFRESH_INTERVAL_MS;
    } catch (error) {
      // The previous keys stay valid.
      this.#failure = error;
      this.#notBefore = clock.monotonic() + this.#backoff.next();
    }
  }

  async #discover(): Promise<readonly IssuerKey[]> {
    const { issuerUrl, discoveryUrl, fetch } = this.#options;
    // Loaded here, because most servers have no OpenID Connect issuer.
    const { parseDiscovery, parseKeySet } = await import("./issuer-documents.ts");
    const keysUrl = parseDiscovery(await fetch(discoveryUrl), issuerUrl, discoveryUrl);
    return parseKeySet(await fetch(keysUrl), keysUrl);
  }
}
