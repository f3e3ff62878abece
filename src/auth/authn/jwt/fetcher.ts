/** Asking strangers over HTTPS: one question, a bounded answer. */
import { getCACertificates } from "node:tls";
import { readAll } from "../../../client/response.ts";
import { networkTransport } from "../../../client/transport/transport.ts";
import { makeRequest } from "../../../http/request.ts";
import type { Clock } from "../../../std/time/clock.ts";

/** Nobody has as many keys. */
const BYTES_MAX = 4 * 1024 * 1024;

export interface FetchOptions {
  /** PEM; the host's when undefined. */
  readonly ca: string | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Throws, naming the place, for an answer that is none. */
export interface Fetcher {
  /** What GET answers with; `bearer` is a token to show. */
  readonly fetchText: (url: string, bearer?: string) => Promise<string>;
  /** The value that GET answers with. */
  readonly fetchJson: (url: string) => Promise<unknown>;
}

export function fetcher(options: FetchOptions): Fetcher {
  return {
    fetchText: (url, bearer) => get(url, { ...options, accept: "*/*", bearer }),
    async fetchJson(url) {
      const text = await get(url, { ...options, accept: "application/json" });
      try {
        return JSON.parse(text);
      } catch (cause) {
        throw new Error(`Cannot get ${url}: ${(cause as Error).message}`, { cause });
      }
    },
  };
}

interface Question extends FetchOptions {
  readonly accept: string;
  readonly bearer?: string | undefined;
}

async function get(url: string, { ca, timeoutMs, clock, bearer, accept }: Question): Promise<string> {
  const place = URL.parse(url);
  if (place === null) throw new Error(`Cannot get ${JSON.stringify(url)}: it is no URL`);
  const { origin, pathname, search } = place;
  await using transport = networkTransport({ server: origin, ca: ca ?? hostAuthorities(), clock, token: bearer });
  const stop = new AbortController();
  const timer = clock.timer(timeoutMs, () => stop.abort(new Error(`no answer in ${timeoutMs / 1000} s`)));
  try {
    const request = { path: pathname, query: search.slice(1), headers: { accept }, signal: stop.signal };
    const { status, body } = await transport(makeRequest(request));
    const text = (await readAll(body, BYTES_MAX)).toString();
    if (status !== 200) throw new Error(`it answered ${status}`);
    return text;
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
