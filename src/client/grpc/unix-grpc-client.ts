/** A gRPC client over a Unix socket, with serializers from our schemas, and errors with the texts of Go's library. */

import { existsSync } from "node:fs";
import * as grpc from "@grpc/grpc-js";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import type { Clock } from "../../std/time/clock.ts";

export interface UnixGrpcOptions {
  /** `/run/plugin.sock`, or `@name` of the abstract namespace. */
  readonly socket: string;
  /** The deadline of each call, in milliseconds. Calls wait for a server that does not run yet. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** A server that was restarted is reached within seconds: the library's own maximum is two minutes. */
const RECONNECT_MS = { initial: 200, max: 3_000 };

export class GrpcError extends Error {
  override readonly name = "GrpcError";
  /** As Go prints it: `DeadlineExceeded`. */
  readonly code: string;

  constructor(code: string, details: string, options?: ErrorOptions) {
    super(`rpc error: code = ${code} desc = ${details}`, options);
    this.code = code;
  }
}

export class UnixGrpcClient implements Disposable {
  readonly #client: grpc.Client;
  readonly #options: UnixGrpcOptions;

  /** Connects with the first call. */
  constructor(options: UnixGrpcOptions) {
    this.#options = options;
    const { socket } = options;
    const path = socket.startsWith("@") ? `\0${socket.slice(1)}` : socket;
    this.#client = new grpc.Client(`unix:${path}`, grpc.credentials.createInsecure(), {
      "grpc.default_authority": "localhost",
      "grpc.initial_reconnect_backoff_ms": RECONNECT_MS.initial,
      "grpc.max_reconnect_backoff_ms": RECONNECT_MS.max,
      "grpc.service_config_disable_resolution": 1,
      "grpc.use_local_subchannel_pool": 1,
    });
  }

  /** Rejects with a `GrpcError`. */
  call<Q extends ObjectSchema, A extends ObjectSchema>(
    { path, request: schema, response: responseSchema }: GrpcMethod<Q, A>,
    request: Infer<Q>,
  ): Promise<Infer<A>> {
    const { clock, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      let timeout: GrpcError | undefined;
      const inFlight = this.#client.makeUnaryRequest(
        path,
        (value: unknown) => Buffer.from(encodeProtobuf(schema, value)),
        (bytes: Buffer) => decodeProtobuf(responseSchema, bytes) as Infer<A>,
        request,
        new grpc.Metadata({ waitForReady: true }),
        (error, response) => {
          timer.cancel();
          if (error === null && response !== undefined) resolve(response);
          else reject(timeout ?? toGrpcError(error));
        },
      );
      // gRPC's deadlines are times of the host's clock, which may be set; this timer is monotonic.
      const timer = clock.timer(timeoutMs, () => {
        timeout = new GrpcError("DeadlineExceeded", this.#describeTimeout());
        inFlight.cancel();
      });
    });
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }

  #describeTimeout(): string {
    if (this.#client.getChannel().getConnectivityState(false) === grpc.connectivityState.READY) {
      return "context deadline exceeded";
    }
    const { socket } = this.#options;
    const why = socket.startsWith("@") || existsSync(socket) ? "connection refused" : "no such file or directory";
    return (
      `latest balancer error: connection error: desc = "transport: Error while dialing: dial unix ${socket}: ` +
      `connect: ${why}"`
    );
  }
}

function toGrpcError(error: grpc.ServiceError | null): GrpcError {
  const details = error?.details ?? "the response is empty";
  const isDropped = details === "Connection dropped" || details === "read ECONNRESET";
  const code = codeName(error?.code ?? grpc.status.UNKNOWN);
  return new GrpcError(code, isDropped ? "error reading from server: EOF" : details, { cause: error });
}

function codeName(code: grpc.status): string {
  if (code === grpc.status.CANCELLED) return "Canceled";
  const words = (grpc.status[code] ?? "UNKNOWN").split("_");
  return words.map((word) => word.charAt(0) + word.slice(1).toLowerCase()).join("");
}
