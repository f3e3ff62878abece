/** Requests over HTTP/2 and TLS, so many at a time, and what they cost. */
import { type ClientHttp2Session, connect } from "node:http2";
import type { Figures } from "./figures.ts";
import { cpuMs } from "./process.ts";

export interface Credentials {
  readonly server: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** For servers whose certificate nobody signed. */
  readonly token?: string;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Bytes of the body as it came. */
  readonly length: number;
}

export interface RequestOptions {
  readonly type?: string;
  readonly accept?: string;
  readonly encoding?: string;
  /** Hears the body as it comes, which then is not kept. */
  readonly onData?: (piece: Buffer) => void;
  /** Counts the body and lets go of it. */
  readonly ignoreBody?: boolean;
}

export class Connection implements Disposable {
  readonly #session: ClientHttp2Session;
  readonly #authorization: Readonly<Record<string, string>>;

  constructor({ server, ca, cert, key, token }: Credentials) {
    this.#session = connect(server, { ca, cert, key, rejectUnauthorized: ca !== undefined });
    this.#session.setMaxListeners(0);
    this.#authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    // Each request fails with the session, and says so.
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
      const pieces: Buffer[] = [];
      stream.on("response", (headers) => {
        status = headers[":status"] ?? 0;
      });
      stream.on("data", (piece: Buffer) => {
        length += piece.length;
        if (onData !== undefined) onData(piece);
        else if (ignoreBody !== true || status >= 300) pieces.push(piece);
      });
      stream.on("end", () => resolve({ status, body: Buffer.concat(pieces).toString(), length }));
      stream.on("error", reject);
    });
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}

/** What a client takes before it has read on: large answers are not to wait for this one. */
const WINDOW_BYTES = 16 * 2 ** 20;

/** Throws for another status, with what the server said. */
export function expectStatus({ status, body }: Reply, expected: number): void {
  if (status !== expected) throw new Error(`Expected ${expected}, got ${status}: ${body.slice(0, 500)}`);
}

export interface LoadResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Runs `job` for 0…count-1, so many at a time. */
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

/** The same with its figures told: rate, processor time of the process, latencies. */
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
