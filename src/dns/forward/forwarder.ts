/** Forwards questions to other servers, with a cache. Equal questions that wait at the same time are sent once. */
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { ExpiringCache } from "../../std/collections/expiring-cache.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { flag, rcode, UDP_BYTES_MAX } from "../wire/constants.ts";
import { type Edns, encodeQuery, type Query, questionKey } from "../wire/query.ts";
import type { TtlChange } from "../wire/upstream-response.ts";
import { parseUpstreamResponse, type UpstreamResponse } from "../wire/upstream-response.ts";
import type { ExchangeMessages } from "./exchange.ts";
import { ResponseCache } from "./response-cache.ts";
import { formatServerAddress, type ServerAddress } from "./server-address.ts";

export interface ForwarderOptions {
  /** The servers of a name, in the order in which they are tried. */
  readonly serversFor: (name: string) => MaybePromise<readonly ServerAddress[]>;
  readonly exchange: ExchangeMessages;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Called for each response that did or did not come from the cache. */
  readonly onCache?: (hit: boolean) => void;
  /** Called for each exchange with a server; undefined: no response. */
  readonly onExchange?: (server: ServerAddress, rcode: number | undefined, milliseconds: number) => void;
}

export interface ForwardedResponse {
  readonly response: UpstreamResponse;
  readonly ttl: TtlChange;
}

/** Questions that wait for other servers. Another one gets no response. */
const IN_FLIGHT_MAX = 1024;
/** Of one client, so that one pod does not use all. */
const CLIENT_IN_FLIGHT_MAX = 256;
/** Within the 5 s after which the resolver of libc repeats a query, a server that is down leaves time for another. */
const ATTEMPT_MS = 1500;
const ATTEMPTS_MAX = 3;
/** How long a server that did not respond is tried after the others. */
const FAILED_MS = 10_000;
/** How long a question that no server answered is not forwarded again: RFC 2308, section 7. */
const FAILURE_MS = 5000;
const FAILURES_MAX = 1000;
/** RFC 8767, section 5: the TTL of records that expired. */
const STALE_SECONDS = 30;

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #cache: ResponseCache;
  readonly #inFlight = new Map<string, Promise<ForwardedResponse | undefined>>();
  /** Bounded by the questions in flight. */
  readonly #clients = new Map<string, number>();
  readonly #failures: ExpiringCache<true>;
  /** When a server failed, by its address; bounded by the servers of the configuration. */
  readonly #failedAt = new Map<string, number>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#cache = new ResponseCache(options.clock);
    this.#failures = new ExpiringCache(FAILURES_MAX, options.clock);
  }

  get cachedResponses(): number {
    return this.#cache.size;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  clearCache(): void {
    this.#cache.clear();
  }

  /** Undefined when no server answers. Never rejects. */
  forward(query: Query, client: string): MaybePromise<ForwardedResponse | undefined> {
    const key = `${questionKey(query)}${query.flags & flag.checkingDisabled}${query.edns?.dnssecOk === true ? "d" : ""}`;
    const cached = this.#cache.get(key);
    const isFresh = cached?.isFresh === true;
    this.#options.onCache?.(isFresh);
    if (isFresh) return { response: cached.response, ttl: { ageSeconds: cached.ageSeconds } };
    const stale = cached && { response: cached.response, ttl: staleTtl };
    if (this.#failures.get(key) === true) return stale;
    const waiting = this.#inFlight.get(key);
    if (waiting !== undefined) return waiting;
    const ofClient = this.#clients.get(client) ?? 0;
    if (this.#inFlight.size >= IN_FLIGHT_MAX || ofClient >= CLIENT_IN_FLIGHT_MAX) return stale;
    this.#clients.set(client, ofClient + 1);
    const answer = this.#query(query, key, stale).finally(() => {
      this.#inFlight.delete(key);
      const left = (this.#clients.get(client) ?? 1) - 1;
      if (left === 0) this.#clients.delete(client);
      else this.#clients.set(client, left);
    });
    this.#inFlight.set(key, answer);
    return answer;
  }

  async #query(
    query: Query,
    key: string,
    stale: ForwardedResponse | undefined,
  ): Promise<ForwardedResponse | undefined> {
    const response = await this.#tryServers(query).catch((error: unknown) => {
      this.#options.log.error("Failed to forward a DNS query", error);
      return undefined;
    });
    if (response !== undefined && isFinal(response)) {
      this.#cache.set(key, response);
      return { response, ttl: { ageSeconds: 0 } };
    }
    this.#failures.set(key, true, FAILURE_MS);
    return stale ?? (response && { response, ttl: { ageSeconds: 0 } });
  }

  /** The first response that is final, else the last one. */
  async #tryServers(query: Query): Promise<UpstreamResponse | undefined> {
    const { serversFor, log, signal } = this.#options;
    const servers = this.#sortByHealth(await serversFor(query.name));
    let last: UpstreamResponse | undefined;
    for (let attempt = 0; attempt < ATTEMPTS_MAX && servers.length > 0; attempt++) {
      const server = servers[attempt % servers.length]!;
      // A server that responded gets no second query.
      if (last !== undefined && attempt >= servers.length) break;
      try {
        const response = await this.#exchange(server, query);
        this.#failedAt.delete(formatServerAddress(server));
        if (isFinal(response)) return response;
        last = response;
      } catch (error) {
        if (signal.aborted) return last;
        this.#failedAt.set(formatServerAddress(server), this.#options.clock.monotonic());
        log.v(4)?.info("A DNS server did not answer", { server: formatServerAddress(server), error: String(error) });
      }
    }
    return last;
  }

  #sortByHealth(servers: readonly ServerAddress[]): readonly ServerAddress[] {
    const now = this.#options.clock.monotonic();
    const hasFailed = (server: ServerAddress): boolean =>
      now - (this.#failedAt.get(formatServerAddress(server)) ?? Number.NEGATIVE_INFINITY) < FAILED_MS;
    if (!servers.some(hasFailed)) return servers;
    return [...servers.filter((server) => !hasFailed(server)), ...servers.filter(hasFailed)];
  }

  /** Over TCP when the response does not fit into a datagram; without EDNS when the server does not support it. */
  async #exchange(server: ServerAddress, query: Query): Promise<UpstreamResponse> {
    const edns: Edns = { payloadBytes: UDP_BYTES_MAX, version: 0, dnssecOk: query.edns?.dnssecOk === true };
    const response = await this.#send(server, query, "udp", edns);
    if (response.truncated) return await this.#send(server, query, "tcp", edns);
    const rejectsEdns = response.rcode === rcode.formatError || response.rcode === rcode.notImplemented;
    if (!rejectsEdns) return response;
    const plain = await this.#send(server, query, "udp", undefined);
    return plain.truncated ? await this.#send(server, query, "tcp", undefined) : plain;
  }

  async #send(
    server: ServerAddress,
    { question, flags }: Query,
    protocol: "udp" | "tcp",
    edns: Edns | undefined,
  ): Promise<UpstreamResponse> {
    const { exchange, clock, random, signal, onExchange } = this.#options;
    const id = Buffer.from(random.bytes(2)).readUInt16BE(0);
    const header = flag.recursionDesired | (flags & flag.checkingDisabled);
    const began = clock.monotonic();
    try {
      const response = await exchange({
        server,
        query: encodeQuery(question, id, header, edns),
        protocol,
        parse: (bytes) => parseUpstreamResponse(bytes, id, question),
        timeoutMs: ATTEMPT_MS,
        clock,
        signal,
      });
      onExchange?.(server, response.rcode, clock.monotonic() - began);
      return response;
    } catch (error) {
      onExchange?.(server, undefined, clock.monotonic() - began);
      throw error;
    }
  }
}

const staleTtl: TtlChange = { ageSeconds: 0, ttlMin: STALE_SECONDS, ttlMax: STALE_SECONDS };

/** Whether another server would not answer better. */
function isFinal({ rcode: code }: UpstreamResponse): boolean {
  return code === rcode.noError || code === rcode.nameError;
}
