/** One query to another server, over UDP or TCP. */
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import type { Clock } from "../../std/time/clock.ts";
import { TCP_BYTES_MAX } from "../wire/constants.ts";
import type { ServerAddress } from "./server-address.ts";

export interface ExchangeOptions<T> {
  readonly server: ServerAddress;
  readonly query: Buffer;
  readonly protocol: "udp" | "tcp";
  /** Undefined: the message is not the response. Over UDP the exchange goes on, since anyone may send datagrams. */
  readonly parse: (bytes: Buffer) => T | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export type ExchangeMessages = <T>(options: ExchangeOptions<T>) => Promise<T>;

/** Rejects when no response arrives in time. */
export const exchangeMessages: ExchangeMessages = (options) =>
  options.protocol === "udp" ? exchangeOverUdp(options) : exchangeOverTcp(options);

/**
 * A socket for each query, so that its port is as hard to predict as its ID. The socket is connected: datagrams of
 * other servers do not arrive, and a closed port is reported at once.
 */
function exchangeOverUdp<T>(options: ExchangeOptions<T>): Promise<T> {
  const { server, query, parse } = options;
  const socket = createSocket(server.address.includes(":") ? "udp6" : "udp4");
  return settle(
    options,
    () => socket.close(),
    (resolve, reject) => {
      socket.on("error", reject);
      socket.on("message", (bytes) => {
        const response = parse(bytes);
        if (response !== undefined) resolve(response);
      });
      socket.connect(server.port, server.address, (error?: Error) => {
        if (error === undefined || error === null) socket.send(query, (failed) => failed && reject(failed));
        else reject(error);
      });
    },
  );
}

function exchangeOverTcp<T>(options: ExchangeOptions<T>): Promise<T> {
  const { server, query, parse } = options;
  const socket = connect({ host: server.address, port: server.port, noDelay: true });
  return settle(
    options,
    () => socket.destroy(),
    (resolve, reject) => {
      // Bounded by the largest message.
      let received: Buffer = Buffer.alloc(0);
      socket.on("error", reject);
      socket.on("close", () => reject(new Error("the server closed the connection")));
      socket.on("connect", () => socket.write(frame(query)));
      socket.on("data", (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
        const response = parse(received.subarray(2, 2 + received.readUInt16BE(0)));
        if (response === undefined) reject(new Error("the server sent a malformed response"));
        else resolve(response);
      });
    },
  );
}

/** A message with its length before it, as TCP carries it. */
export function frame(message: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(Math.min(message.length, TCP_BYTES_MAX) + 2);
  framed.writeUInt16BE(message.length, 0);
  framed.set(message, 2);
  return framed;
}

function settle<T>(
  { timeoutMs, clock, signal }: ExchangeOptions<T>,
  close: () => void,
  start: (resolve: (value: T) => void, reject: (error: unknown) => void) => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let settled = false;
    const end = (report: () => void): void => {
      if (settled) return;
      settled = true;
      timer.cancel();
      signal.removeEventListener("abort", abort);
      close();
      report();
    };
    const abort = (): void => end(() => reject(signal.reason));
    const timer = clock.timer(timeoutMs, () => end(() => reject(new Error(`no response within ${timeoutMs} ms`))));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    else
      start(
        (value) => end(() => resolve(value)),
        (error) => end(() => reject(error)),
      );
  });
}
