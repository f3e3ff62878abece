import type { Logger } from "../../std/log/logger.ts";
import { type Clock, systemClock } from "../../std/time/clock.ts";
import type { Handler } from "../message.ts";
import type { TlsOptions } from "../tls/options.ts";
import type { ListenLimits, ServerContext } from "./exchange.ts";
import { type BindOptions, type Listener, PlainListener } from "./listener.ts";
import { RequestTurns } from "./request-turns.ts";
import { RequestsInFlight } from "./requests-in-flight.ts";
import { SecureListener } from "./secure-listener.ts";

export interface ListenOptions extends BindOptions {
  readonly handler: Handler;
  readonly log: Logger;
  readonly clock?: Clock | undefined;
  /** HTTP/2 and HTTP/1.1 by ALPN; without it plain HTTP/1.1. */
  readonly tls?: TlsOptions | undefined;
  /** Offer HTTP/2 where there is TLS; true when absent. */
  readonly http2?: boolean | undefined;
  /** Let handlers switch the protocol of HTTP/1.1 connections. */
  readonly upgrades?: boolean | undefined;
  readonly limits?: Partial<ListenLimits> | undefined;
  /** Called when a TLS handshake fails. */
  readonly onHandshakeFailure?: (() => void) | undefined;
}

/** The stream limit, and the timeouts except the first, are those of Kubernetes' API server. */
const DEFAULT_LIMITS: ListenLimits = {
  headerBytes: 64 * 1024,
  handshakeTimeoutMs: 10_000,
  headerTimeoutMs: 32_000,
  idleTimeoutMs: 90_000,
  stallTimeoutMs: 300_000,
  streamsPerConnection: 100,
};

/** Rejects with the system's error when the address is in use or not permitted, or the certificate is unusable. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const clock = options.clock ?? systemClock;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const context: ServerContext = {
    handler: options.handler,
    log: options.log,
    clock,
    limits,
    inFlight: new RequestsInFlight(),
    turns: new RequestTurns(clock),
    upgrades: options.upgrades ?? false,
    onHandshakeFailure: options.onHandshakeFailure,
  };
  const listener =
    options.tls === undefined
      ? new PlainListener(context)
      : new SecureListener(context, options.tls, options.http2 ?? true);
  await listener.start(options);
  return listener;
}
