/** Receives queries over UDP. The kernel's receive buffer is the queue, which drops what exceeds it. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import type { HandleMessage } from "./request-handler.ts";

export interface UdpListenerOptions {
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly handle: HandleMessage;
  /** Called for a message that is dropped because too many wait. */
  readonly onOverload: () => void;
  readonly onError: (error: unknown) => void;
}

/** Queries that wait for other servers. */
const PENDING_MAX = 4096;
/** Responses that the kernel has not accepted. */
const SEND_BYTES_MAX = 2 ** 20;
/** For bursts while the event loop is busy; the kernel may limit it. */
const RECEIVE_BYTES = 2 ** 20;

export class UdpListener implements AsyncDisposable {
  readonly port: number;
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.port = socket.address().port;
  }

  /** Rejects when the address is in use or not on this machine. */
  static async open(options: UdpListenerOptions): Promise<UdpListener> {
    const { address, port, handle, onOverload, onError } = options;
    const isIPv6 = address.includes(":");
    const socket = createSocket({
      type: isIPv6 ? "udp6" : "udp4",
      ipv6Only: isIPv6,
      recvBufferSize: RECEIVE_BYTES,
      // Addresses of clients need no look-up, which would cost more than the response.
      lookup: (host, _options, callback) => callback(null, host, isIPv6 ? 6 : 4),
    });
    let pending = 0;
    const send = (response: Buffer | undefined, to: { readonly address: string; readonly port: number }): void => {
      if (response === undefined || isClosed) return;
      // When sending fails, the client is gone or the network is down: the client repeats its query.
      if (socket.getSendQueueSize() <= SEND_BYTES_MAX) socket.send(response, to.port, to.address, () => undefined);
      else onOverload();
    };
    let isClosed = false;
    socket.on("close", () => {
      isClosed = true;
    });
    socket.on("message", (message, client) => {
      if (pending >= PENDING_MAX) {
        onOverload();
        return;
      }
      const response = handle(message, { address: client.address, protocol: "udp" });
      if (!(response instanceof Promise)) {
        send(response, client);
        return;
      }
      pending++;
      response
        .then((bytes) => send(bytes, client))
        .catch(onError)
        .finally(() => pending--);
    });
    try {
      // Before bind(), which may succeed at once, because it looks nothing up.
      const listening = once(socket, "listening");
      socket.bind(port, address);
      await listening;
    } catch (error) {
      socket.close();
      throw error;
    }
    socket.on("error", onError);
    return new UdpListener(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#socket, "close");
    this.#socket.close();
    await closed;
  }
}
