/** Answers one message: from the cluster's records, or from other servers. */
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Forwarder } from "../forward/forwarder.ts";
import type { ClusterRecords } from "../records/cluster-records.ts";
import type { ClusterZone, ZoneAnswer } from "../records/cluster-zone.ts";
import { CLASS_IN, flag, rcode, recordType } from "../wire/constants.ts";
import { decodeAddresses } from "../wire/decode-addresses.ts";
import { encodeQuestion, parseQuery, type Query } from "../wire/query.ts";
import { encodeErrorHeader, encodeResponse, type Protocol, type ResourceRecord } from "../wire/response.ts";
import { adaptResponse } from "../wire/upstream-response.ts";
import type { AnswerSource, DnsMetrics } from "./dns-metrics.ts";

export interface RequestHandlerOptions {
  readonly zone: ClusterZone;
  /** Undefined until the records have been read. */
  readonly records: () => ClusterRecords | undefined;
  readonly forwarder: Pick<Forwarder, "forward">;
  readonly metrics: DnsMetrics;
  readonly clock: Clock;
  /** Called when a query gets SERVFAIL because its answer cannot be built. */
  readonly onError: (error: unknown) => void;
}

export interface DnsClient {
  readonly address: string;
  readonly protocol: Protocol;
}

/** Undefined: the message gets no response. Never rejects or throws. */
export type HandleMessage = (message: Buffer, client: DnsClient) => MaybePromise<Buffer | undefined>;

interface Answer {
  readonly rcode: number;
  readonly source: AnswerSource;
  readonly bytes: Buffer;
}

/** Names that a chain of CNAME records may have. */
const CHAIN_MAX = 8;

export function createRequestHandler(options: RequestHandlerOptions): HandleMessage {
  const resolver = new Resolver(options);
  const { metrics, clock, onError } = options;
  return (message, client) => {
    const began = clock.monotonic();
    const parsed = parseQuery(message);
    if (parsed.kind === "ignored") {
      metrics.onDrop("malformed");
      return undefined;
    }
    const finish = ({ rcode: code, source, bytes }: Answer): Buffer => {
      metrics.onResponse(code, source, clock.monotonic() - began);
      return bytes;
    };
    if (parsed.kind === "error") {
      const { id, flags, rcode: code } = parsed;
      return finish({ rcode: code, source: "", bytes: encodeErrorHeader(id, flags, code) });
    }
    const { query } = parsed;
    metrics.onRequest(client.protocol, client.address.includes(":"), query.type);
    // An exception in a listener would end the process, and with it all that runs there.
    const fail = (error: unknown): Buffer => {
      onError(error);
      return finish(encodeError(query, client, rcode.serverFailure));
    };
    try {
      const answer = resolver.resolve(query, client);
      return answer instanceof Promise ? answer.then(finish, fail) : finish(answer);
    } catch (error) {
      return fail(error);
    }
  };
}

class Resolver {
  readonly #options: RequestHandlerOptions;
  /** Rotates addresses, so that clients that use the first one are spread. */
  #rotation = 0;

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
  }

  resolve(query: Query, client: DnsClient): MaybePromise<Answer> {
    const { name, type } = query;
    const { zone, records } = this.#options;
    if (query.edns !== undefined && query.edns.version > 0) return encodeError(query, client, rcode.badVersion);
    if (query.class !== CLASS_IN || type === recordType.axfr || type === recordType.ixfr) {
      return encodeError(query, client, rcode.refused);
    }
    if (!zone.contains(name) || query.hasDotInLabel) {
      const found = records();
      const reverse = found && zone.resolveReverse(found, name, type);
      return reverse === undefined ? this.#forward(query, client) : this.#encode(query, client, reverse);
    }
    const found = records();
    if (found === undefined) return encodeError(query, client, rcode.serverFailure);
    const answer = zone.resolve(found, name, type, this.#serial());
    return answer.target === undefined ? this.#encode(query, client, answer) : this.#followChain(query, client, answer);
  }

  #forward(query: Query, client: DnsClient): MaybePromise<Answer> {
    // Without recursion a client examines the cache of a server: RFC 8020 and others allow to refuse.
    if ((query.flags & flag.recursionDesired) === 0) return encodeError(query, client, rcode.refused);
    const forwarded = this.#options.forwarder.forward(query, client.address);
    const encode = (each: Awaited<typeof forwarded>): Answer => {
      if (each === undefined) return encodeError(query, client, rcode.serverFailure, "forward");
      const bytes = adaptResponse(each.response, query, client.protocol, each.ttl);
      return { rcode: each.response.rcode, source: "forward", bytes };
    };
    return forwarded instanceof Promise ? forwarded.then(encode) : encode(forwarded);
  }

  /** Adds the records of the name that an ExternalName service refers to. */
  async #followChain(query: Query, client: DnsClient, first: ZoneAnswer): Promise<Answer> {
    const { zone, records } = this.#options;
    const answers = [...first.answers];
    let target = first.target;
    for (let i = 0; i < CHAIN_MAX && target !== undefined; i++) {
      const found = records();
      if (!zone.contains(target) || found === undefined) {
        const forwarded = await this.#resolveTarget(query, client, target);
        if (forwarded === undefined) return encodeError(query, client, rcode.serverFailure, "kubernetes");
        return this.#encode(query, client, {
          rcode: forwarded.rcode,
          answers: [...answers, ...forwarded.records],
          additionals: [],
        });
      }
      const next: ZoneAnswer = zone.resolve(found, target, query.type, this.#serial());
      answers.push(...next.answers);
      if (next.target === undefined) return this.#encode(query, client, { ...next, answers });
      target = next.target;
    }
    // A chain that is longer is a loop.
    return encodeError(query, client, rcode.serverFailure, "kubernetes");
  }

  async #resolveTarget(
    { type, edns }: Query,
    client: DnsClient,
    target: string,
  ): Promise<{ readonly rcode: number; readonly records: readonly ResourceRecord[] } | undefined> {
    const question: Query = {
      id: 0,
      flags: flag.recursionDesired,
      question: encodeQuestion(target, type),
      name: target,
      hasDotInLabel: false,
      type,
      class: CLASS_IN,
      edns: edns && { ...edns, dnssecOk: false },
    };
    const forwarded = await this.#options.forwarder.forward(question, client.address);
    if (forwarded === undefined) return undefined;
    const bytes = adaptResponse(forwarded.response, question, "tcp", forwarded.ttl);
    return { rcode: forwarded.response.rcode, records: decodeAddresses(bytes) };
  }

  #encode(query: Query, { protocol }: DnsClient, answer: ZoneAnswer): Answer {
    const isNegative = answer.answers.length === 0;
    const bytes = encodeResponse(
      query,
      {
        rcode: answer.rcode,
        authoritative: true,
        answers: this.#rotate(answer.answers),
        authorities: isNegative ? [this.#options.zone.soa(this.#serial())] : [],
        additionals: answer.additionals,
      },
      protocol,
    );
    return { rcode: answer.rcode, source: "kubernetes", bytes };
  }

  #rotate(records: readonly ResourceRecord[]): readonly ResourceRecord[] {
    const [first] = records;
    if (records.length < 2 || first?.type === "CNAME") return records;
    this.#rotation = (this.#rotation + 1) % 0x1_0000;
    const start = this.#rotation % records.length;
    return [...records.slice(start), ...records.slice(0, start)];
  }

  /** Of the zone: seconds. */
  #serial(): number {
    return Math.floor(this.#options.clock.now() / 1000);
  }
}

function encodeError(query: Query, { protocol }: DnsClient, code: number, source: AnswerSource = ""): Answer {
  const none = { authoritative: false, answers: [], authorities: [], additionals: [] };
  return { rcode: code, source, bytes: encodeResponse(query, { rcode: code, ...none }, protocol) };
}
