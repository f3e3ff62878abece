/** Implements `Runtime` with CRI over gRPC on a unix socket. Serializers come from our own schemas. */
import * as grpc from "@grpc/grpc-js";
import { callSpan, traceMetadata } from "../../client/grpc/trace-call.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { currentSpan } from "../../tracing/span.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import { announcesChange, createdAtOf, type EventEnvelope, eventFilters, subscribe } from "./containerd-events.ts";
import type { ContainerEventResponse } from "./cri/container.ts";
import { imageService, runtimeService } from "./cri/services.ts";
import { type ImageService, type Runtime, RuntimeError } from "./runtime.ts";

export interface CriOptions {
  /** `unix:///run/containerd/containerd.sock` */
  readonly endpoint: string;
  /** Timeout of every call except pulls; see `Runtime`. */
  readonly requestTimeoutMs: number;
  readonly clock: Clock;
  /** Undefined: calls are not traced. */
  readonly tracer?: Tracer | undefined;
}

export interface CriClient extends Disposable {
  readonly runtime: Runtime;
  readonly images: ImageService;
  readonly events: WatchContainerEvents;
}

/**
 * Streams the runtime's container events: those of the CRI, or else those of containerd. Resolves when the stream ends,
 * rejects with its `RuntimeError`.
 */
export type WatchContainerEvents = (
  onEvent: (event: Pick<ContainerEventResponse, "createdAt">) => void,
  signal: AbortSignal,
) => Promise<void>;

/** The list of images of a large node exceeds gRPC's default of 4 MiB. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

interface Method {
  readonly request: ObjectSchema;
  readonly response: ObjectSchema;
}

interface CallOptions {
  /** Milliseconds on top of the request timeout; `Infinity` for no limit. */
  readonly extraMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Connects lazily; throws only for an invalid endpoint. */
export function createCriClient(options: CriOptions): CriClient {
  if (!options.endpoint.startsWith("unix:///")) {
    throw new Error(`Cannot use container runtime endpoint "${options.endpoint}": it is not unix:///path/to/socket`);
  }
  const client = new grpc.Client(options.endpoint, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": MESSAGE_BYTES_MAX,
    "grpc.max_send_message_length": MESSAGE_BYTES_MAX,
    // Reconnects quickly to a runtime that restarts.
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 3_000,
    "grpc.service_config_disable_resolution": 1,
  });
  const { tracer } = options;
  const untraced = createUnaryCall(client, options);
  const call = tracer === undefined ? untraced : traceCalls(untraced, tracer);
  return {
    runtime: createRuntime(call),
    images: createImageService(call),
    events: createEventWatcher(client),
    [Symbol.dispose]: () => client.close(),
  };
}

/** Each call has a span, in that of its caller if there is one; the runtime continues it. */
function traceCalls(call: UnaryCall, tracer: Tracer): UnaryCall {
  return async (path, method, request, options) => {
    const described = callSpan(path);
    const parent = currentSpan();
    const span = parent === undefined ? tracer.start(described) : parent.child(described);
    const traced = async (): Promise<never> => {
      try {
        const response = await call(path, method, request, options);
        span?.set({ "rpc.grpc.status_code": grpc.status.OK });
        return response;
      } catch (error) {
        if (error instanceof RuntimeError) span?.set({ "rpc.grpc.status_code": codeNumber(error.code) });
        throw error;
      }
    };
    if (span === undefined) return await call(path, method, request, options);
    if (parent === undefined) span.trace.decide(false);
    return await span.run(traced);
  };
}

function codeNumber(code: string): number {
  return (grpc.status as Readonly<Record<string, unknown>>)[code] as number;
}

type UnaryCall = (path: string, method: Method, request: unknown, options: CallOptions) => Promise<never>;

function createUnaryCall(client: grpc.Client, options: CriOptions): UnaryCall {
  return (path, method, request, { extraMs, signal }) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      let timer: Timer | undefined;
      const onTimeout = (): void => {
        inFlight.cancel();
        settle(() => reject(new RuntimeError("DEADLINE_EXCEEDED", "context deadline exceeded")));
      };
      const onAbort = (): void => {
        inFlight.cancel();
        settle(() => reject(signal?.reason));
      };
      const settle = (complete: () => void): void => {
        signal?.removeEventListener("abort", onAbort);
        timer?.cancel();
        complete();
      };
      const inFlight = client.makeUnaryRequest(
        path,
        (value: unknown) => Buffer.from(encodeProtobuf(method.request, value)),
        (bytes: Buffer) => decodeProtobuf(method.response, bytes),
        request,
        traceMetadata(),
        (error, response) =>
          settle(() => (error === null ? resolve(response as never) : reject(fromServiceError(error)))),
      );
      signal?.addEventListener("abort", onAbort, { once: true });
      // gRPC's deadlines are wall-clock times, which the host may change; this timer is monotonic.
      const limit = options.requestTimeoutMs + extraMs;
      if (Number.isFinite(limit)) timer = options.clock.timer(limit, onTimeout);
    });
}

function createEventWatcher(client: grpc.Client): WatchContainerEvents {
  const cri = { path: "/runtime.v1.RuntimeService/GetContainerEvents", ...runtimeService.GetContainerEvents };
  return async (onEvent, signal) => {
    try {
      await readStream<ContainerEventResponse>(client, cri, {}, onEvent, signal);
    } catch (error) {
      if (!(error instanceof RuntimeError) || error.code !== "UNIMPLEMENTED") throw error;
      const onEnvelope = (envelope: EventEnvelope): void => {
        if (announcesChange(envelope)) onEvent({ createdAt: createdAtOf(envelope) });
      };
      await readStream<EventEnvelope>(client, subscribe, { filters: eventFilters }, onEnvelope, signal);
    }
  };
}

/** Calls a method that streams its responses. */
function readStream<Response>(
  client: grpc.Client,
  { path, request, response }: Method & { readonly path: string },
  value: unknown,
  onResponse: (response: Response) => void,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stream = client.makeServerStreamRequest(
      path,
      (each: unknown) => Buffer.from(encodeProtobuf(request, each)),
      (bytes: Buffer) => decodeProtobuf(response, bytes) as Response,
      value,
    );
    const cancel = (): void => stream.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    stream.on("data", onResponse);
    stream.on("error", (error: grpc.ServiceError) => reject(signal.aborted ? signal.reason : fromServiceError(error)));
    stream.on("end", resolve);
    stream.on("close", () => signal.removeEventListener("abort", cancel));
  });
}

function fromServiceError(error: grpc.ServiceError): RuntimeError {
  const details = error.code === grpc.status.UNAVAILABLE ? toGoMessage(error.details) : error.details;
  return new RuntimeError(grpc.status[error.code] ?? "UNKNOWN", details, { cause: error });
}

/** Go's text for a broken connection, which people and tools search for in Kubernetes' events. */
function toGoMessage(details: string): string {
  if (details === "Connection dropped" || details === "read ECONNRESET") return "error reading from server: EOF";
  const path = /connect (?:ECONNREFUSED|ENOENT) (\S+?)\.?(?: Resolution note|$)/.exec(details)?.[1];
  if (path === undefined) return details;
  const why = details.includes("ENOENT") ? "no such file or directory" : "connection refused";
  return `connection error: desc = "transport: Error while dialing: dial unix ${path}: connect: ${why}"`;
}

function createRuntime(call: UnaryCall): Runtime {
  const unary =
    (name: keyof typeof runtimeService) =>
    (request: unknown, signal?: AbortSignal): Promise<never> =>
      call(`/runtime.v1.RuntimeService/${name}`, runtimeService[name], request, { extraMs: 0, signal });
  // A cancelled call would leave the sandbox's network rules behind: once sent, these calls are not cancelled.
  const uncancellable =
    (name: "StopPodSandbox" | "RemovePodSandbox") =>
    async (request: unknown, signal?: AbortSignal): Promise<never> => {
      signal?.throwIfAborted();
      return await call(`/runtime.v1.RuntimeService/${name}`, runtimeService[name], request, {
        extraMs: 0,
        signal: undefined,
      });
    };
  /** `zeroMs`: the meaning of the timeout 0. */
  const withTimeout =
    (name: "StopContainer" | "ExecSync" | "CheckpointContainer", zeroMs: number) =>
    (request: { readonly timeout?: bigint | undefined }, signal?: AbortSignal): Promise<never> =>
      call(`/runtime.v1.RuntimeService/${name}`, runtimeService[name], request, {
        extraMs: Number(request.timeout ?? 0n) * 1000 || zeroMs,
        signal,
      });
  return {
    version: unary("Version"),
    status: unary("Status"),
    runtimeConfig: unary("RuntimeConfig"),
    updateRuntimeConfig: unary("UpdateRuntimeConfig"),
    runPodSandbox: unary("RunPodSandbox"),
    stopPodSandbox: uncancellable("StopPodSandbox"),
    removePodSandbox: uncancellable("RemovePodSandbox"),
    podSandboxStatus: unary("PodSandboxStatus"),
    listPodSandbox: unary("ListPodSandbox"),
    createContainer: unary("CreateContainer"),
    startContainer: unary("StartContainer"),
    stopContainer: withTimeout("StopContainer", 0),
    removeContainer: unary("RemoveContainer"),
    listContainers: unary("ListContainers"),
    containerStatus: unary("ContainerStatus"),
    updateContainerResources: unary("UpdateContainerResources"),
    listContainerStats: unary("ListContainerStats"),
    listPodSandboxStats: unary("ListPodSandboxStats"),
    listPodSandboxMetrics: unary("ListPodSandboxMetrics"),
    listMetricDescriptors: unary("ListMetricDescriptors"),
    reopenContainerLog: unary("ReopenContainerLog"),
    execSync: withTimeout("ExecSync", Number.POSITIVE_INFINITY),
    exec: unary("Exec"),
    attach: unary("Attach"),
    portForward: unary("PortForward"),
    checkpointContainer: withTimeout("CheckpointContainer", 0),
  };
}

function createImageService(call: UnaryCall): ImageService {
  const unary =
    (name: keyof typeof imageService, extraMs = 0) =>
    (request: unknown, signal?: AbortSignal): Promise<never> =>
      call(`/runtime.v1.ImageService/${name}`, imageService[name], request, { extraMs, signal });
  return {
    listImages: unary("ListImages"),
    imageStatus: unary("ImageStatus"),
    pullImage: unary("PullImage", Number.POSITIVE_INFINITY),
    removeImage: unary("RemoveImage"),
    imageFsInfo: unary("ImageFsInfo"),
  };
}
