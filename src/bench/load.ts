/** A closed loop of HTTP/2 requests on one connection, and what they cost. */
import { type ClientHttp2Session, connect } from "node:http2";

export interface Credentials {
  readonly server: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
}

export class Connection implements Disposable {
  readonly #session: ClientHttp2Session;

  constructor({ server, ca, cert, key }: Credentials) {
    this.#session = connect(server, { ca, cert, key });
    // Each request fails with the session, and says so.
    this.#session.on("error", () => {});
  }

  request(method: string, path: string, body?: unknown, onText?: (text: string) => void): Promise<Reply> {
    const stream = this.#session.request(
      { ":method": method, ":path": path, accept: "application/json", "content-type": "application/json" },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(JSON.stringify(body));
    return new Promise((resolve, reject) => {
      let status = 0;
      let text = "";
      stream.on("response", (headers) => {
        status = headers[":status"] ?? 0;
      });
      stream.setEncoding("utf8");
      stream.on("data", (chunk: string) => {
        if (onText === undefined) text += chunk;
        else onText(chunk);
      });
      stream.on("end", () => resolve({ status, body: text }));
      stream.on("error", reject);
    });
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
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

export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
