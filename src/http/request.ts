/** Requests made in this process, by clients and by components that call a `Handler` directly. */
import type { Headers, HttpRequest, Peer } from "./message.ts";

export interface RequestInit {
  /** GET when absent. */
  readonly method?: string | undefined;
  /** Percent-encoded, without the query. */
  readonly path: string;
  /** Without the question mark. */
  readonly query?: string | undefined;
  readonly headers?: Headers | undefined;
  readonly body?: Uint8Array | string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly peer?: Peer | undefined;
}

const localPeer: Peer = { address: "127.0.0.1", port: 0, encrypted: true, certificates: [], protocol: "local" };

export function makeRequest(init: RequestInit): HttpRequest {
  const body = typeof init.body === "string" ? Buffer.from(init.body) : init.body;
  return {
    method: init.method ?? "GET",
    path: init.path,
    query: init.query ?? "",
    headers: init.headers ?? {},
    body: once(body),
    peer: init.peer ?? localPeer,
    signal: init.signal ?? new AbortController().signal,
  };
}

async function* once(body: Uint8Array | undefined): AsyncGenerator<Uint8Array> {
  if (body !== undefined && body.length > 0) yield body;
}
