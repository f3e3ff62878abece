/** A gRPC channel to one server of the store. */

import { isIP } from "node:net";
import { checkServerIdentity } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { callSpan, traceMetadata } from "../../client/grpc/trace-call.ts";
import type { Connector } from "../../client/transport/connector.ts";
import { LocalForwarder } from "../../client/transport/local-forwarder.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { inExportedSpan } from "../../tracing/span.ts";
import { type StoreTls, sameTls } from "./tls.ts";

/** etcd limits requests to 1.5 MiB, but not its responses; a page of a list is about a MiB. */
const RESPONSE_BYTES_MAX = 256 * 2 ** 20;
/** As Kubernetes' client: finds a server that is gone without closing its connections. */
const KEEPALIVE_MS = { interval: 30_000, timeout: 10_000 };
const RECONNECT_MS = { initial: 100, max: 2_000 };

/** Node.js accepts no IP address as the server name of TLS, which grpc-js would pass. */
const IP_SERVER_NAME = "etcd";

/** A failed call. */
export class CallError extends Error {
  override readonly name = "CallError";
  readonly status: grpc.status;
  /** Whether the server may have processed the request. */
  readonly wasSent: boolean;

  constructor(status: grpc.status, details: string, wasSent: boolean, options?: ErrorOptions) {
    super(details, options);
    this.status = status;
    this.wasSent = wasSent;
  }

  /** Whether another server, or the same one later, may succeed. */
  get isUnavailable(): boolean {
    return this.status === grpc.status.UNAVAILABLE || this.status === grpc.status.DEADLINE_EXCEEDED;
  }
}

export type BidirectionalStream<Q, A> = grpc.ClientDuplexStream<Q, A>;

export class Endpoint implements Disposable {
  /** `127.0.0.1:2379` */
  readonly address: string;
  readonly #readTls: () => Promise<StoreTls | undefined>;
  readonly #clock: Clock;
  #channel: { readonly tls: StoreTls | undefined; readonly client: grpc.Client } | undefined;
  #failed = true;
  #closed = false;
  readonly #connector: Connector | undefined;
  /** The local socket to which the channel connects when there is a connector. */
  #forwarder: Promise<LocalForwarder> | undefined;

  /** `readTls` reads the certificates, undefined for a connection without TLS. */
  constructor(
    address: string,
    readTls: () => Promise<StoreTls | undefined>,
    clock: Clock,
    connector?: Connector | undefined,
  ) {
    this.#connector = connector;
    this.address = address;
    this.#readTls = readTls;
    this.#clock = clock;
  }

  /** Rejects with a `CallError`. */
  async call<Q extends ObjectSchema, A extends ObjectSchema>(
    method: GrpcMethod<Q, A>,
    request: Infer<Q>,
    timeoutMs: number,
  ): Promise<Infer<A>> {
    return await inExportedSpan(callSpan(method.path), () => this.#call(method, request, timeoutMs));
  }

  async #call<Q extends ObjectSchema, A extends ObjectSchema>(
    { path, request: schema, response: responseSchema }: GrpcMethod<Q, A>,
    request: Infer<Q>,
    timeoutMs: number,
  ): Promise<Infer<A>> {
    const client = await this.#connect();
    return await new Promise((resolve, reject) => {
      let isTimeout = false;
      const inFlight = client.makeUnaryRequest(
        path,
        (value: unknown) => Buffer.from(encodeProtobuf(schema, value)),
        (bytes: Buffer) => decodeProtobuf(responseSchema, bytes) as Infer<A>,
        request,
        traceMetadata(),
        (error, response) => {
          timer.cancel();
          if (error === null && response !== undefined) resolve(response);
          else reject(isTimeout ? timeoutError(this.address, timeoutMs) : this.#toCallError(error));
        },
      );
      // gRPC's deadlines are times of the host's clock, which may be set; this timer is monotonic.
      const timer = this.#clock.timer(timeoutMs, () => {
        isTimeout = true;
        this.#failed = true;
        inFlight.cancel();
      });
    });
  }

  /** Errors are emitted by the stream; `toError` makes them a `CallError`. */
  async open<Q extends ObjectSchema, A extends ObjectSchema>({
    path,
    request: schema,
    response: responseSchema,
  }: GrpcMethod<Q, A>): Promise<BidirectionalStream<Infer<Q>, Infer<A>>> {
    const client = await this.#connect();
    return client.makeBidiStreamRequest(
      path,
      (value: Infer<Q>) => Buffer.from(encodeProtobuf(schema, value)),
      (bytes: Buffer) => decodeProtobuf(responseSchema, bytes) as Infer<A>,
    );
  }

  toError(error: unknown): CallError {
    return this.#toCallError(error as grpc.ServiceError);
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#channel?.client.close();
    this.#channel = undefined;
    void this.#forwarder?.then(
      (forwarder) => forwarder[Symbol.dispose](),
      () => {},
    );
  }

  /** After a failure the certificates are read again: they may have been renewed. */
  async #connect(): Promise<grpc.Client> {
    if (this.#channel !== undefined && !this.#failed) return this.#channel.client;
    const tls = await this.#readTls();
    const target = await this.#target();
    if (this.#closed) throw new CallError(grpc.status.CANCELLED, "the client is closed", false);
    this.#failed = false;
    if (this.#channel !== undefined && sameTls(tls, this.#channel.tls)) return this.#channel.client;
    this.#channel?.client.close();
    const client = new grpc.Client(target, this.#credentials(tls), {
      ...(isIP(this.#host) === 0
        ? { ...(this.#connector === undefined ? {} : { "grpc.ssl_target_name_override": this.#host }) }
        : { "grpc.ssl_target_name_override": IP_SERVER_NAME }),
      ...(this.#connector === undefined ? {} : { "grpc.default_authority": this.address }),
      "grpc.max_receive_message_length": RESPONSE_BYTES_MAX,
      "grpc.keepalive_time_ms": KEEPALIVE_MS.interval,
      "grpc.keepalive_timeout_ms": KEEPALIVE_MS.timeout,
      "grpc.initial_reconnect_backoff_ms": RECONNECT_MS.initial,
      "grpc.max_reconnect_backoff_ms": RECONNECT_MS.max,
      "grpc.service_config_disable_resolution": 1,
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_http_proxy": 0,
    });
    this.#channel = { tls, client };
    return client;
  }

  async #target(): Promise<string> {
    if (this.#connector === undefined) return `dns:${this.address}`;
    const port = Number(this.address.slice(this.address.lastIndexOf(":") + 1));
    this.#forwarder ??= LocalForwarder.open(this.#connector, this.#host, port);
    return `unix:${(await this.#forwarder).path}`;
  }

  get #host(): string {
    return this.address.slice(0, this.address.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
  }

  #credentials(tls: StoreTls | undefined): grpc.ChannelCredentials {
    if (tls === undefined) return grpc.credentials.createInsecure();
    return grpc.credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.cert ?? null, {
      checkServerIdentity: (_, certificate) => checkServerIdentity(this.#host, certificate),
    });
  }

  #toCallError(error: grpc.ServiceError | null): CallError {
    const details = error?.details ?? "the response is empty";
    const status = error?.code ?? grpc.status.UNKNOWN;
    if (status === grpc.status.UNAVAILABLE) this.#failed = true;
    const wasSent = !(status === grpc.status.UNAVAILABLE && NOT_SENT.test(details));
    return new CallError(status, `${this.address}: ${details}`, wasSent, { cause: error });
  }
}

/** What grpc-js reports when a request had no connection. */
const NOT_SENT = /^(?:No connection established|Name resolution failed|Failed to connect)/;

function timeoutError(address: string, timeoutMs: number): CallError {
  return new CallError(grpc.status.DEADLINE_EXCEEDED, `${address}: no response within ${timeoutMs} ms`, true);
}
