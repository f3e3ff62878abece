/** Asking strangers over HTTPS: one question, a bounded answer in JSON. */
import { getCACertificates } from "node:tls";
import { readAll } from "../../client/answer.ts";
import { networkTransport } from "../../client/transport.ts";
import { makeRequest } from "../../http/request.ts";
import type { Clock } from "../../std/clock.ts";

/** Nobody has as many keys. */
const BYTES_MAX = 4 * 1024 * 1024;

export interface FetchOptions {
  /** PEM; the host's when undefined. */
  readonly ca: string | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** The value that GET answers with. Throws, naming the place, for anything else. */
export async function fetchJson(url: string, { ca, timeoutMs, clock }: FetchOptions): Promise<unknown> {
  const { origin, pathname, search } = new URL(url);
  await using transport = networkTransport({ server: origin, ca: ca ?? hostAuthorities(), clock });
  const stop = new AbortController();
  const timer = clock.timer(timeoutMs, () => stop.abort(new Error(`no answer in ${timeoutMs / 1000} s`)));
  try {
    const request = { path: pathname, query: search.slice(1), headers: { accept: "application/json" } };
    const { status, body } = await transport(makeRequest({ ...request, signal: stop.signal }));
    const text = (await readAll(body, BYTES_MAX)).toString();
    if (status !== 200) throw new Error(`it answered ${status}`);
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`Cannot get ${url}: ${(cause as Error).message}`, { cause });
  } finally {
    timer.cancel();
  }
}

let authorities: string | undefined;

/** Those Node comes with, and those the administrator of this host has added. */
function hostAuthorities(): string {
  authorities ??= [...new Set([...getCACertificates("default"), ...getCACertificates("system")])].join("\n");
  return authorities;
}
