/** The servers of the store: calls go to one of them, and to the next when it fails. */

import type { Connector } from "../../client/transport/connector.ts";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { CallError, Endpoint } from "./endpoint.ts";
import { readStoreTls, type StoreTlsFiles } from "./tls.ts";

export interface ServersOptions {
  /** `http://127.0.0.1:2379`, `https://etcd-1.example.com:2379`; at least one. */
  readonly urls: readonly string[];
  readonly tls: StoreTlsFiles;
  readonly clock: Clock;
  /** How to connect to the servers; undefined: directly. */
  readonly connector?: Connector | undefined;
}

export interface CallOptions {
  /** The deadline of each attempt, in milliseconds. */
  readonly timeoutMs?: number;
  /** Whether the request may be sent again although a server may have processed it. */
  readonly isRepeatable?: boolean;
  /** For how long failed attempts are repeated; 0 for one attempt per server. */
  readonly retryMs?: number;
}

const TIMEOUT_MS = 10_000;
/** Servers that restart one after the other, or elect a leader, fail no request that is repeated for this time. */
const RETRY_MS = 15_000;
const PAUSE_MS = 50;

/** Throws a RangeError that says what is wrong with a URL. */
export function parseServerUrl(text: string): { readonly address: string; readonly isSecure: boolean } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSecure = url?.protocol === "https:";
  const extra = url === undefined ? "" : `${url.username}${url.search}${url.hash}${url.pathname.slice(1)}`;
  if (url === undefined || !(isSecure || url.protocol === "http:") || url.hostname === "" || extra !== "") {
    throw new RangeError(`Cannot use store server "${text}": it must be http://host:port or https://host:port`);
  }
  return { address: `${url.hostname}:${url.port === "" ? (isSecure ? "443" : "80") : url.port}`, isSecure };
}

export class Servers implements Disposable {
  readonly endpoints: readonly Endpoint[];
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #active = 0;

  constructor({ urls, tls, clock, connector }: ServersOptions) {
    this.#clock = clock;
    this.endpoints = urls.map((url) => {
      const { address, isSecure } = parseServerUrl(url);
      return new Endpoint(address, async () => (isSecure ? await readStoreTls(tls) : undefined), clock, connector);
    });
  }

  /** The server that is used until it fails. */
  get active(): Endpoint {
    return this.endpoints[this.#active]!;
  }

  /** Another server than `failed` becomes the active one. */
  fail(failed: Endpoint): void {
    if (this.active === failed) this.#active = (this.#active + 1) % this.endpoints.length;
  }

  /** Rejects with the `CallError` of the last attempt. */
  async call<Q extends ObjectSchema, A extends ObjectSchema>(
    method: GrpcMethod<Q, A>,
    request: Infer<Q>,
    options: CallOptions = {},
  ): Promise<Infer<A>> {
    const { timeoutMs = TIMEOUT_MS, isRepeatable = true, retryMs = RETRY_MS } = options;
    const until = this.#clock.monotonic() + retryMs;
    for (let attempt = 1; ; attempt++) {
      const endpoint = this.active;
      try {
        return await endpoint.call(method, request, timeoutMs);
      } catch (error) {
        if (!(error instanceof CallError) || !error.isUnavailable || this.#closing.signal.aborted) throw error;
        this.fail(endpoint);
        if (error.wasSent && !isRepeatable) throw error;
        const isRoundOver = attempt % this.endpoints.length === 0;
        if (isRoundOver && this.#clock.monotonic() >= until) throw error;
        if (isRoundOver) await this.#clock.sleep(PAUSE_MS, this.#closing.signal).catch(() => {});
      }
    }
  }

  [Symbol.dispose](): void {
    this.#closing.abort();
    for (const endpoint of this.endpoints) endpoint[Symbol.dispose]();
  }
}
