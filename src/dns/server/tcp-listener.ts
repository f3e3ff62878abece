/** Receives queries over TCP: RFC 7766, several on one connection. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { ByteChunks } from "../../std/collections/byte-chunks.ts";
import type { Clock } from "../../std/time/clock.ts";
import { frame } from "../forward/exchange.ts";
import type { HandleMessage } from "./request-handler.ts";

export interface TcpListenerOptions {
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly handle: HandleMessage;
  readonly clock: Clock;
  /** Called for a connection that is refused because there are too many. */
  readonly onOverload: () => void;
  readonly onError: (error: unknown) => void;
}

/** Before each message. */
const LENGTH_BYTES = 2;
const CONNECTIONS_MAX = 256;
const CLIENT_CONNECTIONS_MAX = 32;
/** Queries of one connection that wait; the connection is not read meanwhile. */
const PENDING_MAX = 32;
/** Responses that the client has not read; the connection is not read meanwhile. */
const WRITE_BYTES_MAX = 256 * 1024;
/** How long a connection may be open without a query, and how long a client may take to read responses. */
const IDLE_MS = 10_000;

export class TcpListener implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #connections: ReadonlySet<Socket>;

  private constructor(server: Server, connections: ReadonlySet<Socket>) {
    this.#server = server;
    this.#connections = connections;
    this.port = (server.address() as AddressInfo).port;
  }

  /** Rejects when the address is in use or not on this machine. */
  static async open(options: TcpListenerOptions): Promise<TcpListener> {
    const { address, port, onOverload, onError } = options;
    const connections = new Set<Socket>();
    // Bounded by the connections.
    const clients = new Map<string, number>();
    const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
      const client = socket.remoteAddress ?? "";
      const ofClient = clients.get(client) ?? 0;
      if (connections.size >= CONNECTIONS_MAX || ofClient >= CLIENT_CONNECTIONS_MAX) {
        onOverload();
        socket.destroy();
        return;
      }
      connections.add(socket);
      clients.set(client, ofClient + 1);
      socket.on("close", () => {
        connections.delete(socket);
        const left = (clients.get(client) ?? 1) - 1;
        if (left === 0) clients.delete(client);
        else clients.set(client, left);
      });
      serveConnection(socket, client, options);
    });
    server.listen({ port, host: address, ipv6Only: address.includes(":") });
    await once(server, "listening");
    server.on("error", onError);
    return new TcpListener(server, connections);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#connections) socket.destroy();
    await closed;
  }
}

function serveConnection(socket: Socket, client: string, { handle, clock, onError }: TcpListenerOptions): void {
  const received = new MessageReader();
  let pending = 0;
  let isAnswering = false;
  let hasEnded = false;
  let idle = clock.timer(IDLE_MS, () => socket.destroy());
  const restartIdle = (): void => {
    idle.cancel();
    idle = clock.timer(IDLE_MS, () => socket.destroy());
  };
  const isFull = (): boolean => pending >= PENDING_MAX || socket.writableLength >= WRITE_BYTES_MAX;
  const answerMessages = async (): Promise<void> => {
    const slice = new TimeSlice();
    while (!socket.destroyed && !isFull()) {
      const message = received.take();
      if (message === undefined) return;
      answer(message);
      if (!slice.isOver) continue;
      // A chunk may have thousands of queries.
      socket.pause();
      await slice.end();
    }
  };
  const readMessages = async (): Promise<void> => {
    if (isAnswering) return;
    isAnswering = true;
    await answerMessages();
    isAnswering = false;
    if (isFull()) socket.pause();
    else if (!hasEnded) socket.resume();
    else if (pending === 0) socket.end();
  };
  const answer = (message: Buffer): void => {
    const response = handle(message, { address: client, protocol: "tcp" });
    if (!(response instanceof Promise)) {
      write(response);
      return;
    }
    pending++;
    response
      .then(write)
      .catch(onError)
      .finally(() => {
        pending--;
        void readMessages();
      });
  };
  const write = (response: Buffer | undefined): void => {
    if (socket.destroyed) return;
    // Not DNS.
    if (response === undefined) socket.destroy();
    else socket.write(frame(response), restartIdle);
  };
  socket.on("data", (chunk: Buffer) => {
    received.add(chunk);
    void readMessages();
  });
  socket.on("drain", () => void readMessages());
  socket.on("end", () => {
    hasEnded = true;
    void readMessages();
  });
  socket.on("close", () => idle.cancel());
  // The connection was reset.
  socket.on("error", () => socket.destroy());
}

/** Takes messages out of a stream. Bounded by the largest message and one chunk. */
class MessageReader {
  #received = new ByteChunks();
  /** Of the next message with its length; undefined until known. */
  #bytes: number | undefined;

  add(chunk: Buffer): void {
    this.#received.add(chunk);
  }

  /** Undefined until the message is complete. */
  take(): Buffer | undefined {
    if (this.#bytes === undefined) {
      if (this.#received.length < LENGTH_BYTES) return undefined;
      this.#bytes = LENGTH_BYTES + this.#received.concat().readUInt16BE(0);
    }
    if (this.#received.length < this.#bytes) return undefined;
    const received = this.#received.concat();
    const message = received.subarray(LENGTH_BYTES, this.#bytes);
    this.#received = new ByteChunks();
    if (received.length > this.#bytes) this.#received.add(received.subarray(this.#bytes));
    this.#bytes = undefined;
    return message;
  }
}
