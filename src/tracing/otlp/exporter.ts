/** Sends spans to a collector of OpenTelemetry: OTLP over gRPC without TLS. */
import * as grpc from "@grpc/grpc-js";
import type { Clock } from "../../std/time/clock.ts";
import type { Attributes } from "../span.ts";
import { ExportError } from "./batcher.ts";
import { decodeResponse, type EncodedSpan, EXPORT_PATH, encodeRequest } from "./encode.ts";

/** OpenTelemetry's default. */
const TIMEOUT_MS = 10_000;
const RESPONSE_BYTES_MAX = 64 * 1024;

/** The codes after which OTLP clients retry. */
const RETRYABLE: ReadonlySet<grpc.status> = new Set([
  grpc.status.CANCELLED,
  grpc.status.DEADLINE_EXCEEDED,
  grpc.status.RESOURCE_EXHAUSTED,
  grpc.status.ABORTED,
  grpc.status.OUT_OF_RANGE,
  grpc.status.UNAVAILABLE,
  grpc.status.DATA_LOSS,
]);

export class OtlpExporter implements Disposable {
  readonly #client: grpc.Client;
  readonly #clock: Clock;
  readonly #resource: Attributes;

  /** Connects with the first batch. `endpoint` is a gRPC target: `localhost:4317`, `dns:///…`, `unix:///…`. */
  constructor(endpoint: string, resource: Attributes, clock: Clock) {
    this.#clock = clock;
    this.#resource = resource;
    this.#client = new grpc.Client(grpcTarget(endpoint), grpc.credentials.createInsecure(), {
      "grpc.max_receive_message_length": RESPONSE_BYTES_MAX,
      "grpc.service_config_disable_resolution": 1,
    });
  }

  send(spans: readonly EncodedSpan[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = this.#client.makeUnaryRequest(
        EXPORT_PATH,
        (bytes: Buffer) => bytes,
        decodeResponse,
        encodeRequest(this.#resource, spans),
        (error, response) => {
          timer.cancel();
          signal.removeEventListener("abort", cancel);
          const { rejected = 0, message = "" } = response ?? {};
          if (error !== null) {
            const text = `rpc error: code = ${grpc.status[error.code]} desc = ${error.details}`;
            reject(new ExportError(text, RETRYABLE.has(error.code), { cause: error }));
          } else if (rejected > 0) {
            reject(new ExportError(`the collector rejected ${rejected} spans: ${message}`, false));
          } else resolve();
        },
      );
      const cancel = (): void => call.cancel();
      const timer = this.#clock.timer(TIMEOUT_MS, cancel);
      signal.addEventListener("abort", cancel, { once: true });
      if (signal.aborted) cancel();
    });
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

/** grpc-js has no scheme for abstract sockets; Node.js names them with a leading NUL. */
function grpcTarget(endpoint: string): string {
  const abstract = /^unix-abstract:(?:\/\/)?(.+)$/.exec(endpoint)?.[1];
  return abstract === undefined ? endpoint : `unix:\0${abstract}`;
}
