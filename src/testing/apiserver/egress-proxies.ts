/** Egress proxies for tests: HTTP CONNECT over TCP, TLS and sockets, and a konnectivity server. */
import { createServer as createHttpServer, type Server as HttpServer, type IncomingMessage } from "node:http";
import { createServer as createHttpsServer, type ServerOptions } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { PACKET, type Packet, PROXY_PATH, packet } from "../../apiserver/egress/konnectivity-protocol.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";

export interface ConnectProxyOptions {
  /** HTTPS with these options; plain HTTP when absent. */
  readonly tls?: ServerOptions;
  /** The path of a socket; a port of 127.0.0.1 when absent. */
  readonly path?: string;
  /** Replaces the destination. */
  readonly resolve?: (target: string) => string;
  /** Replaces the proxy's response; undefined: it connects. */
  readonly respond?: (socket: Duplex) => boolean;
}

export class ConnectProxy implements AsyncDisposable {
  /** `host:port` of each request. */
  readonly targets: string[] = [];
  /** The common name of each client's certificate. */
  readonly clients: (string | undefined)[] = [];
  readonly #server: HttpServer;
  readonly #sockets = new Set<Duplex>();
  readonly #options: ConnectProxyOptions;

  private constructor(options: ConnectProxyOptions) {
    this.#options = options;
    this.#server = options.tls === undefined ? createHttpServer() : createHttpsServer(options.tls);
    this.#server.on("connect", (request: IncomingMessage, socket: Duplex) => this.#connect(request, socket));
    this.#server.on("connection", (socket: Socket) => this.#track(socket));
  }

  static async start(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
    const proxy = new ConnectProxy(options);
    await new Promise<void>((done) => {
      if (options.path === undefined) proxy.#server.listen(0, "127.0.0.1", done);
      else proxy.#server.listen(options.path, done);
    });
    return proxy;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `${this.#options.tls === undefined ? "http" : "https"}://127.0.0.1:${port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }

  #connect(request: IncomingMessage, socket: Duplex): void {
    const target = request.url ?? "";
    this.targets.push(target);
    this.clients.push((socket as TLSSocket).getPeerCertificate?.()?.subject?.CN as string | undefined);
    if (this.#options.respond?.(socket) === true) return;
    const upstream = dialTarget(this.#options.resolve?.(target) ?? target);
    this.#track(upstream);
    upstream.on("error", () => socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
    upstream.once("connect", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(upstream).pipe(socket);
    });
    socket.on("error", () => upstream.destroy());
    socket.once("close", () => upstream.destroy());
  }

  #track(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}

export interface KonnectivityOptions {
  readonly path: string;
  readonly resolve?: (target: string) => string;
  /** Replaces the response to a request to connect; undefined: the server connects. */
  readonly respond?: (request: NonNullable<Packet["dialRequest"]>) => Packet | "nothing" | undefined;
}

type Call = grpc.ServerDuplexStream<Packet, Packet>;

/** Connects from its own network, as an agent of konnectivity does. */
export class KonnectivityServer implements AsyncDisposable {
  readonly targets: string[] = [];
  /** Types of the packets that clients sent, without data. */
  readonly received: number[] = [];
  readonly #server = new grpc.Server();
  readonly #options: KonnectivityOptions;
  readonly #sockets = new Set<Socket>();
  #lastId = 0n;

  private constructor(options: KonnectivityOptions) {
    this.#options = options;
    this.#server.addService(
      {
        Proxy: {
          path: PROXY_PATH,
          requestStream: true,
          responseStream: true,
          requestSerialize: (value: Packet) => Buffer.from(encodeProtobuf(packet, value)),
          requestDeserialize: (bytes: Buffer) => decodeProtobuf(packet, bytes),
          responseSerialize: (value: Packet) => Buffer.from(encodeProtobuf(packet, value)),
          responseDeserialize: (bytes: Buffer) => decodeProtobuf(packet, bytes),
        },
      },
      { Proxy: (call: Call) => this.#serve(call) },
    );
  }

  static async start(options: KonnectivityOptions): Promise<KonnectivityServer> {
    const server = new KonnectivityServer(options);
    await new Promise<void>((resolve, reject) =>
      server.#server.bindAsync(`unix:${options.path}`, grpc.ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    return server;
  }

  /** Number of connections to destinations. */
  get open(): number {
    return this.#sockets.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.forceShutdown();
  }

  #serve(call: Call): void {
    let socket: Socket | undefined;
    let connectID = 0n;
    call.on("error", () => {});
    call.on("data", ({ type, dialRequest, data }: Packet) => {
      if (type !== PACKET.data) this.received.push(type ?? -1);
      if (type === PACKET.dialRequest) {
        connectID = ++this.#lastId;
        socket = this.#dial(call, dialRequest ?? {}, connectID);
      } else if (type === PACKET.data) {
        if (socket?.write(data?.data ?? new Uint8Array()) !== false) return;
        call.pause();
        socket.once("drain", () => call.resume());
      } else if (type === PACKET.closeRequest) {
        socket?.destroy();
        if (socket?.destroyed === true) {
          call.write({ type: PACKET.closeResponse, closeResponse: { connectID, error: "" } });
        }
      }
    });
    call.on("end", () => {
      socket?.destroy();
      call.end();
    });
    call.on("cancelled", () => socket?.destroy());
  }

  #dial(call: Call, request: NonNullable<Packet["dialRequest"]>, connectID: bigint): Socket | undefined {
    const { address = "", random } = request;
    this.targets.push(address);
    const answer = this.#options.respond?.(request);
    if (answer !== undefined) {
      if (answer !== "nothing") call.write(answer);
      return undefined;
    }
    const socket = dialTarget(this.#options.resolve?.(address) ?? address);
    this.#sockets.add(socket);
    socket.once("connect", () =>
      call.write({ type: PACKET.dialResponse, dialResponse: { error: "", connectID, random } }),
    );
    socket.on("data", (chunk) => {
      if (call.write({ type: PACKET.data, data: { connectID, data: Buffer.from(chunk as Buffer), error: "" } })) return;
      socket.pause();
      call.once("drain", () => socket.resume());
    });
    socket.once("end", () => call.write({ type: PACKET.closeResponse, closeResponse: { connectID, error: "" } }));
    socket.once("error", ({ message }) =>
      call.write({ type: PACKET.dialResponse, dialResponse: { error: message, connectID: 0n, random } }),
    );
    socket.once("close", () => this.#sockets.delete(socket));
    return socket;
  }
}

function dialTarget(target: string): Socket {
  const [, host = "", port = ""] = /^\[?(.*?)\]?:(\d+)$/.exec(target) ?? [];
  return connect({ host, port: Number(port) });
}
