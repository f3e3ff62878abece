/**
 * Translates `v5.channel.k8s.io` of a client to SPDY of the agent, as kube-apiserver with the gate
 * TranslateStreamCloseWebsocketRequests. The client's connection is upgraded first: errors of the agent arrive on the
 * error channel.
 */
import type { Duplex } from "node:stream";
import type { PodAttachOptions } from "../../../api/core/pod/connect-options.ts";
import type { Status } from "../../../api/status.ts";
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { SpdyConnection, type SpdyStream, type StreamEnd, type StreamHandler } from "../../../http/spdy/connection.ts";
import { connectUpgrade, UpgradeError, type UpgradeRefusal } from "../../../http/upgrade/connect-upgrade.ts";
import { ByteChunks } from "../../../std/collections/byte-chunks.ts";
import type { CounterFamily } from "../../../std/metrics/metrics.ts";
import { traceHeaders } from "../../../tracing/span.ts";
import { CHANNELS, ChannelSocket, rejectHandshake } from "./channel-socket.ts";
import { ResizeDecoder } from "./resize-decoder.ts";
import type { UpgradeDestination } from "./upgrade-connection.ts";

export type RequestedStreams = Pick<PodAttachOptions, "stdin" | "stdout" | "stderr" | "tty">;

const PROTOCOLS = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"] as const;
/** kube-apiserver's limit. */
const IDLE_MS = 4 * 60 * 60 * 1000;
/** Of an error response, and of the text of an error stream. */
const ERROR_BYTES_MAX = 64 * 1024;

export interface TranslatorOptions {
  readonly streams: RequestedStreams;
  readonly signal: AbortSignal;
  /** By the status code of the result; of a command with an exit code it is 200. */
  readonly requests: CounterFamily;
}

export function translateStreams(
  request: HttpRequest,
  to: UpgradeDestination,
  options: TranslatorOptions,
): HttpResponse {
  const rejection = rejectHandshake(request);
  if (rejection !== undefined) {
    options.requests.with("400").inc();
    return rejection;
  }
  const socket = new ChannelSocket(request);
  void translate(socket, to, options);
  return socket.response;
}

async function translate(
  socket: ChannelSocket,
  to: UpgradeDestination,
  { streams, signal, requests }: TranslatorOptions,
): Promise<void> {
  const stop = new AbortController();
  const remote = new RemoteCommand(socket, streams);
  const reading = socket.run(remote.input).then(() => stop.abort(new Error("the client has closed the connection")));
  try {
    // Shows that the connection is established, on the first channel that can be written.
    const { stdout, stderr } = streams;
    const channel = stdout === true ? "stdout" : stderr === true ? "stderr" : "error";
    await socket.send(CHANNELS[channel], new Uint8Array());
    const status = await remote.run(to, AbortSignal.any([signal, stop.signal]));
    requests.with(String(status.code ?? 200)).inc();
    await socket.send(CHANNELS.error, Buffer.from(JSON.stringify(status)));
  } catch {
    // The client is gone.
    requests.with("500").inc();
  } finally {
    socket.close();
    await reading;
  }
}

type StreamStatus = Partial<Omit<Status, "kind" | "apiVersion">>;

const SUCCESS: StreamStatus = { metadata: {}, status: "Success" };

function internalError(message: string): StreamStatus {
  return {
    metadata: {},
    status: "Failure",
    message: `Internal error occurred: ${message}`,
    reason: "InternalError",
    details: { causes: [{ message }] },
    code: 500,
  };
}

/** The client's channels, connected to the streams of an agent. */
class RemoteCommand {
  readonly input = {
    data: (channel: number, data: Buffer): Promise<void> | void => this.#receive(channel, data),
    close: (channel: number): Promise<void> | void => {
      if (channel !== CHANNELS.stdin) return;
      this.#isStdinClosed = true;
      return this.#opened.promise.then((streams) => streams?.stdin?.end());
    },
  };
  readonly #socket: ChannelSocket;
  readonly #requested: RequestedStreams;
  readonly #resizes = new ResizeDecoder();
  /** Input waits for it; undefined when there is no connection to the agent. */
  readonly #opened = Promise.withResolvers<InputStreams | undefined>();
  #isStdinClosed = false;

  constructor(socket: ChannelSocket, requested: RequestedStreams) {
    this.#socket = socket;
    this.#requested = requested;
  }

  /** Resolves with the result for the error channel; rejects when the signal aborts. */
  async run(to: UpgradeDestination, signal: AbortSignal): Promise<StreamStatus> {
    try {
      const result = await connect(to, signal);
      if (!("socket" in result)) return await refusedStatus(result);
      return await this.#stream(result.socket, String(result.headers["x-stream-protocol-version"] ?? ""), signal);
    } catch (error) {
      signal.throwIfAborted();
      return internalError(error instanceof Error ? error.message : String(error));
    } finally {
      this.#opened.resolve(undefined);
    }
  }

  async #stream(socket: Duplex, protocol: string, signal: AbortSignal): Promise<StreamStatus> {
    const { stdin, stdout, stderr, tty } = this.#requested;
    const close = (): void => void socket.destroy();
    signal.addEventListener("abort", close, { once: true });
    if (signal.aborted) close();
    try {
      const connection = new SpdyConnection({ input: socket, output: socket, role: "client" });
      const open = (streamtype: string, handler: StreamHandler): SpdyStream => connection.open({ streamtype }, handler);
      const error = new ErrorStream();
      const ignored: StreamHandler = { data: () => {}, end: () => {} };
      const outputs: Promise<void>[] = [];
      const copyTo = (channel: number): StreamHandler => {
        const { promise, resolve } = Promise.withResolvers<void>();
        outputs.push(promise);
        return { data: (chunk) => this.#socket.send(channel, chunk), end: () => resolve() };
      };
      open("error", error.handler);
      const streams: InputStreams = {
        stdin: stdin === true ? open("stdin", ignored) : undefined,
        resize: undefined,
      };
      if (stdout === true) open("stdout", copyTo(CHANNELS.stdout));
      if (stderr === true && tty !== true) open("stderr", copyTo(CHANNELS.stderr));
      const hasSizes = tty === true && (protocol === PROTOCOLS[0] || protocol === PROTOCOLS[1]);
      this.#opened.resolve(hasSizes ? { ...streams, resize: open("resize", ignored) } : streams);
      // The streams report what ends it.
      const running = connection.run().catch(() => {});
      await Promise.all(outputs);
      const { text, how } = await error.ended;
      connection.close();
      socket.destroy();
      await running;
      signal.throwIfAborted();
      return decodeResult(text, how, protocol);
    } finally {
      signal.removeEventListener("abort", close);
    }
  }

  #receive(channel: number, data: Buffer): Promise<void> | void {
    if (channel === CHANNELS.stdin && this.#requested.stdin === true && !this.#isStdinClosed) {
      return this.#opened.promise.then((streams) => streams?.stdin?.write(data));
    }
    if (channel !== CHANNELS.resize || this.#requested.tty !== true) return;
    const sizes = this.#resizes.decode(data);
    if (sizes.length === 0) return;
    const text = Buffer.from(sizes.map((size) => `${JSON.stringify(size)}\n`).join(""));
    return this.#opened.promise.then((streams) => streams?.resize?.write(text));
  }
}

interface InputStreams {
  readonly stdin: SpdyStream | undefined;
  readonly resize: SpdyStream | undefined;
}

/** Collects the text of the error stream. */
class ErrorStream {
  readonly handler: StreamHandler = {
    data: (chunk) => {
      this.#text = Buffer.concat([this.#text, chunk]).subarray(0, ERROR_BYTES_MAX);
    },
    end: (how) => this.#ended.resolve({ text: this.#text.toString("utf8"), how }),
  };
  readonly #ended = Promise.withResolvers<{ readonly text: string; readonly how: StreamEnd }>();
  #text = Buffer.alloc(0);

  get ended(): Promise<{ readonly text: string; readonly how: StreamEnd }> {
    return this.#ended.promise;
  }
}

/** Rejects with Go's error of a failed POST. */
async function connect({ headers = {}, ...to }: UpgradeDestination, signal: AbortSignal) {
  try {
    return await connectUpgrade({
      ...to,
      method: "POST",
      headers: { ...headers, ...traceHeaders(), upgrade: "SPDY/3.1", "x-stream-protocol-version": PROTOCOLS },
      signal,
      idleMs: IDLE_MS,
    });
  } catch (error) {
    if (!(error instanceof UpgradeError)) throw error;
    const host = to.host.includes(":") ? `[${to.host}]` : to.host;
    throw new Error(`error sending request: Post "https://${host}:${to.port}${to.path}": ${error.message}`);
  }
}

/** The agent's error: a Status as it is, other text as client-go reports it. */
async function refusedStatus({ body }: UpgradeRefusal): Promise<StreamStatus> {
  const chunks = new ByteChunks();
  for await (const chunk of body) {
    chunks.add(chunk);
    if (chunks.length > ERROR_BYTES_MAX) break;
  }
  const text = chunks.concat().toString("utf8").trim();
  const status = parseStatus(text);
  return status?.kind === "Status" ? status : internalError(`unable to upgrade connection: ${text}`);
}

function parseStatus(text: string): Partial<Status> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The text of the error stream as client-go reads it; no text is success. */
function decodeResult(text: string, how: StreamEnd, protocol: string): StreamStatus {
  if (text === "") return how === "closed" ? internalError("error reading from error stream: unexpected EOF") : SUCCESS;
  if (protocol !== PROTOCOLS[0]) return internalError(`error executing remote command: ${text}`);
  const status = parseStatus(text);
  if (status === undefined)
    return internalError(`error stream protocol error: invalid JSON in ${JSON.stringify(text)}`);
  if (status.status === "Success") return SUCCESS;
  if (status.status !== "Failure") return internalError("error stream protocol error: unknown error");
  if (status.reason !== "NonZeroExitCode") return internalError(status.message ?? "");
  if (status.details === undefined) return internalError("error stream protocol error: details must be set");
  const cause = status.details.causes?.find(({ reason }) => reason === "ExitCode");
  if (cause === undefined) return internalError("error stream protocol error: no ExitCode cause given");
  const code = cause.message ?? "";
  if (!/^\d{1,3}$/.test(code) || Number(code) > 255) {
    return internalError(`error stream protocol error: invalid exit code value ${JSON.stringify(code)}`);
  }
  return {
    metadata: {},
    status: "Failure",
    message: `command terminated with non-zero exit code: command terminated with exit code ${Number(code)}`,
    reason: "NonZeroExitCode",
    details: { causes: [{ reason: "ExitCode", message: String(Number(code)) }] },
  };
}
