/** Requests over HTTP/2 and TLS with a number of concurrent clients: rate, latency, CPU time. */
import { type ClientHttp2Session, connect } from "node:http2";
import type { Figures } from "./figures.ts";
import { cpuMs } from "./process.ts";

export interface Credentials {
  readonly server: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** For servers with a self-signed certificate. */
  readonly token?: string;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Bytes of the body on the wire. */
  readonly length: number;
}

export interface RequestOptions {
  readonly type?: string;
  readonly accept?: string;
  readonly encoding?: string;
  /** Receives the chunks of the body; the body of the reply is empty then. */
  readonly onData?: (chunk: Buffer) => void;
  /** Only counts the bytes of the body. */
  readonly ignoreBody?: boolean;
}

export class Connection implements Disposable {
  readonly #session: ClientHttp2Session;
  readonly #authorization: Readonly<Record<string, string>>;

  constructor({ server, ca, cert, key, token }: Credentials) {
    // The windows of Go's HTTP/2 client: with Node's 64 KiB a watch waits for the server's event loop every few events.
    const settings = { initialWindowSize: STREAM_WINDOW_BYTES };
    this.#session = connect(server, { ca, cert, key, rejectUnauthorized: ca !== undefined, settings });
    this.#session.setMaxListeners(0);
    this.#authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    // An error of the session fails each of its requests too.
    this.#session.on("error", () => {});
    this.#session.on("connect", () => this.#session.setLocalWindowSize(WINDOW_BYTES));
  }

  request(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Reply> {
    const { type = "application/json", accept = "application/json", encoding, onData, ignoreBody } = options;
    const stream = this.#session.request(
      {
        ":method": method,
        ":path": path,
        accept,
        "content-type": type,
        ...this.#authorization,
        ...(encoding === undefined ? {} : { "accept-encoding": encoding }),
      },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(typeof body === "string" ? body : JSON.stringify(body));
    return new Promise((resolve, reject) => {
      let status = 0;
      let length = 0;
      const chunks: Buffer[] = [];
      stream.on("response", (headers) => {
        status = headers[":status"] ?? 0;
      });
      stream.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (onData !== undefined) onData(chunk);
        else if (ignoreBody !== true || status >= 300) chunks.push(chunk);
      });
      stream.on("end", () => resolve({ status, body: Buffer.concat(chunks).toString(), length }));
      stream.on("error", reject);
    });
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}

/** Flow-control window of the connection, so that large responses do not wait for WINDOW_UPDATE frames. */
const WINDOW_BYTES = 16 * 2 ** 20;
const STREAM_WINDOW_BYTES = 4 * 2 ** 20;

/** Throws an error with the body for another status. */
export function expectStatus({ status, body }: Reply, expected: number): void {
  if (status !== expected) throw new Error(`Expected ${expected}, got ${status}: ${body.slice(0, 500)}`);
}

export interface LoadResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Runs `job` for 0…count-1 with a number of concurrent workers. */
export async function closedLoop(
  count: number,
  concurrency: number,
  job: (index: number) => Promise<void>,
): Promise<LoadResult> {
  const times: number[] = [];
  let next = 0;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < count) {
        const at = performance.now();
        await job(next++);
        times.push(performance.now() - at);
      }
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  return { perSecond: count / seconds, p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) };
}

/** Runs a closed loop and adds its figures: rate, CPU time of the process, latencies. */
export async function measureLoop(
  figures: Figures,
  what: string,
  options: { readonly pid: number; readonly count: number; readonly concurrency: number },
  job: (index: number) => Promise<void>,
): Promise<void> {
  const { pid, count, concurrency } = options;
  const before = cpuMs(pid);
  const { perSecond, p50Ms, p99Ms } = await closedLoop(count, concurrency, job);
  const microseconds = ((cpuMs(pid) - before) * 1000) / count;
  figures.addAll(`${what}, ${concurrency} at a time`, {
    "/s": perSecond,
    "µs CPU each": microseconds,
    "ms p50": p50Ms,
    "ms p99": p99Ms,
  });
}

export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
