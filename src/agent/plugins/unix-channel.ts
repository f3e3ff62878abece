/** A gRPC client over a Unix socket, with serializers from our schemas. */

import * as grpc from "@grpc/grpc-js";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { RuntimeError } from "../runtime/runtime.ts";

export interface CallLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export class UnixChannel implements Disposable {
  readonly #client: grpc.Client;
  readonly #clock: Clock;

  /** Connects with the first call. */
  constructor(socket: string, clock: Clock) {
    this.#clock = clock;
    this.#client = new grpc.Client(`unix://${socket}`, grpc.credentials.createInsecure(), {
      "grpc.service_config_disable_resolution": 1,
    });
  }

  /** Rejects with a `RuntimeError` that has the gRPC status code, or with the signal's reason. */
  call<Q extends ObjectSchema, A extends ObjectSchema>(
    method: GrpcMethod<Q, A>,
    request: Infer<Q>,
    { timeoutMs, signal }: CallLimits,
  ): Promise<Infer<A>> {
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      let timedOut = false;
      const inFlight = this.#client.makeUnaryRequest(
        method.path,
        (value: unknown) => Buffer.from(encodeProtobuf(method.request, value)),
        (bytes: Buffer) => decodeProtobuf(method.response, bytes) as Infer<A>,
        request,
        (error, response) => {
          timer.cancel();
          signal?.removeEventListener("abort", cancel);
          if (error === null && response !== undefined) resolve(response);
          else if (timedOut)
            reject(new RuntimeError("DEADLINE_EXCEEDED", "context deadline exceeded", { cause: error }));
          else if (signal?.aborted === true) reject(signal.reason);
          else reject(failure(error));
        },
      );
      const cancel = (): void => inFlight.cancel();
      const timer = this.#clock.timer(timeoutMs, () => {
        timedOut = true;
        cancel();
      });
      signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  /** Calls a method that streams its responses. Resolves when the stream ends; rejects as `call`. */
  stream<Q extends ObjectSchema, A extends ObjectSchema>(
    method: GrpcMethod<Q, A>,
    request: Infer<Q>,
    onResponse: (response: Infer<A>) => void,
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const stream = this.#client.makeServerStreamRequest(
        method.path,
        (value: unknown) => Buffer.from(encodeProtobuf(method.request, value)),
        (bytes: Buffer) => decodeProtobuf(method.response, bytes) as Infer<A>,
        request,
      );
      const cancel = (): void => stream.cancel();
      signal.addEventListener("abort", cancel, { once: true });
      stream.on("data", onResponse);
      stream.on("error", (error: grpc.ServiceError) => reject(signal.aborted ? signal.reason : failure(error)));
      stream.on("end", resolve);
      stream.on("close", () => signal.removeEventListener("abort", cancel));
    });
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

function failure(error: grpc.ServiceError | null): RuntimeError {
  const code = grpc.status[error?.code ?? grpc.status.UNKNOWN] ?? "UNKNOWN";
  return new RuntimeError(code, error?.details ?? "the response is empty", { cause: error });
}
