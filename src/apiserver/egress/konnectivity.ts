/** Connections through a konnectivity proxy: a gRPC connection over a Unix socket for each, as in Kubernetes. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { Duplex } from "node:stream";
import * as grpc from "@grpc/grpc-js";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { PACKET, type Packet, PROXY_PATH, packet } from "./konnectivity-protocol.ts";

/** Bounds the connection to the proxy, and its response to a request to connect. */
const TIMEOUT_MS = 30_000;
/** How long a closed connection waits for the proxy's confirmation. */
const CLOSE_MS = 10_000;
/** gRPC servers accept messages of up to 4 MiB. */
const DATA_BYTES_MAX = 1 << 16;

/** Resolves when the proxy can be called. The caller closes the client. */
export async function connectToKonnectivity(path: string, clock: Clock): Promise<grpc.Client> {
  const client = new grpc.Client(`unix:${path}`, grpc.credentials.createInsecure(), {
    "grpc.default_authority": "localhost",
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 3_000,
    "grpc.service_config_disable_resolution": 1,
    "grpc.use_local_subchannel_pool": 1,
  });
  const { promise, resolve, reject } = Promise.withResolvers<grpc.Client>();
  const timer = clock.timer(TIMEOUT_MS, () => reject(new Error(describeTimeout(path))));
  const channel = client.getChannel();
  const follow = (): void => {
    const state = channel.getConnectivityState(true);
    if (state === grpc.connectivityState.READY) resolve(client);
    else if (state !== grpc.connectivityState.SHUTDOWN) {
      channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, (error) => {
        if (error === undefined) follow();
      });
    }
  };
  follow();
  try {
    return await promise;
  } catch (error) {
    client.close();
    throw error;
  } finally {
    timer.cancel();
  }
}

function describeTimeout(path: string): string {
  const why = existsSync(path) ? "connection refused" : "no such file or directory";
  const dialing = `transport: Error while dialing: dial unix ${path}: connect: ${why}`;
  return `context deadline exceeded: connection error: desc = "${dialing}"`;
}

/** Requests a connection to `target` (`host:port`). The client is closed with the connection, or when that fails. */
export function dialThrough(client: grpc.Client, target: string, clock: Clock): Promise<Duplex> {
  const socket = new KonnectivitySocket(client, clock);
  return socket.dial(target);
}

type Done = (error?: Error | null) => void;
type Chunk = Uint8Array | string;
type Call = grpc.ClientDuplexStream<Packet, Packet>;

class KonnectivitySocket extends Duplex {
  readonly #client: grpc.Client;
  readonly #clock: Clock;
  readonly #call: Call;
  readonly #random = randomBytes(8).readBigInt64BE() & 0x7fff_ffff_ffff_ffffn;
  readonly #dialed = Promise.withResolvers<Duplex>();
  #timer: Timer | undefined;
  /** Undefined until the proxy has connected. */
  #connectId: bigint | undefined;
  #isOver = false;

  constructor(client: grpc.Client, clock: Clock) {
    super({ allowHalfOpen: true });
    // Also while no user listens.
    this.on("error", () => {});
    this.#client = client;
    this.#clock = clock;
    this.#call = client.makeBidiStreamRequest<Packet, Packet>(
      PROXY_PATH,
      (value) => Buffer.from(encodeProtobuf(packet, value)),
      (bytes) => decodeProtobuf(packet, bytes),
    );
    this.#call.on("data", (received: Packet) => this.#receive(received));
    this.#call.on("end", () => this.#fail("tunnel closed"));
    this.#call.on("error", (error) => this.#fail("tunnel closed", error));
  }

  async dial(address: string): Promise<Duplex> {
    this.#timer = this.#clock.timer(TIMEOUT_MS, () => this.destroy(new Error("dial timeout, backstop")));
    const dialRequest = { protocol: "tcp", address, random: this.#random };
    this.#call.write({ type: PACKET.dialRequest, dialRequest });
    return await this.#dialed.promise;
  }

  override _read(): void {
    this.#call.resume();
  }

  override _write(chunk: Chunk, encoding: BufferEncoding, done: Done): void {
    this.#send([{ chunk, encoding }], done);
  }

  override _writev(chunks: { readonly chunk: Chunk; readonly encoding: BufferEncoding }[], done: Done): void {
    this.#send(chunks, done);
  }

  /** The protocol has no half-closed connections: what the other end still sends is read. */
  override _final(done: Done): void {
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#timer?.cancel();
    if (error !== null) this.#dialed.reject(error);
    this.#dialed.promise.catch(() => {});
    done(error);
    this.#close();
  }

  #send(chunks: readonly { readonly chunk: Chunk; readonly encoding: BufferEncoding }[], done: Done): void {
    const connectID = this.#connectId ?? 0n;
    const packets: Packet[] = [];
    for (const { chunk, encoding } of chunks) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
      for (let start = 0; start < bytes.length; start += DATA_BYTES_MAX) {
        const data = bytes.subarray(start, start + DATA_BYTES_MAX);
        packets.push({ type: PACKET.data, data: { connectID, data } });
      }
    }
    const last = packets.pop();
    for (const each of packets) this.#call.write(each);
    // The last packet is processed after the others.
    if (last === undefined) done();
    else this.#call.write(last, (error?: Error | null) => done(error));
  }

  #receive({ type, dialResponse, data, closeResponse }: Packet): void {
    if (type === PACKET.dialResponse) this.#open(dialResponse ?? {});
    else if (type === PACKET.closeDial) this.#fail("dial closed");
    else if (type === PACKET.data) this.#receiveData(data ?? {});
    else if (type === PACKET.closeResponse) this.#end(closeResponse?.error ?? "");
  }

  #open({ error = "", connectID = 0n, random }: NonNullable<Packet["dialResponse"]>): void {
    if (random !== this.#random || this.#connectId !== undefined) this.#fail("tunnel closed");
    else if (error !== "") this.#fail(error);
    else {
      this.#timer?.cancel();
      this.#connectId = connectID;
      this.#dialed.resolve(this);
    }
  }

  #receiveData({ connectID, data = new Uint8Array() }: NonNullable<Packet["data"]>): void {
    if (connectID !== this.#connectId || this.#isOver || this.destroyed || data.length === 0) return;
    if (!this.push(data)) this.#call.pause();
  }

  /** The other end has closed the connection, or has confirmed that this one did. */
  #end(error: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (error !== "" && !this.destroyed) this.destroy(new Error(error));
    else {
      this.push(null);
      // Nothing can be written any more.
      if (!this.destroyed) this.end();
    }
    this.#closeClient();
  }

  #fail(message: string, cause?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (!this.destroyed) this.destroy(new Error(message, { cause }));
    this.#closeClient();
  }

  /** Reports to the proxy that the connection is not used any more. */
  #close(): void {
    if (this.#isOver) return;
    const connectID = this.#connectId;
    if (connectID === undefined) {
      this.#call.write({ type: PACKET.closeDial, closeDial: { random: this.#random } }, () => this.#closeClient());
      this.#isOver = true;
      return;
    }
    this.#call.write({ type: PACKET.closeRequest, closeRequest: { connectID } });
    this.#call.resume();
    this.#timer = this.#clock.timer(CLOSE_MS, () => this.#closeClient());
  }

  #closeClient(): void {
    this.#timer?.cancel();
    this.#call.cancel();
    this.#client.close();
  }
}
