/** Requests to the endpoints of OpenID Connect issuers: GET over HTTPS, with bounded time and size. */
import { getCACertificates } from "node:tls";
import { readAll } from "../../../client/response.ts";
import { externalTransport } from "../../../client/transport/external-transport.ts";
import { makeRequest } from "../../../http/request.ts";
import { parseJson } from "../../../schema/json/parse.ts";
import { valuesMax } from "../../../schema/value/limits.ts";
import type { Clock } from "../../../std/time/clock.ts";

/** The maximum size of a response: far more than the keys of any issuer, or the groups of any user. */
const BYTES_MAX = 1024 * 1024;

export interface FetchOptions {
  /** PEM of the authorities to trust; the host's when undefined. */
  readonly ca: string | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Errors name the URL. */
export interface Fetcher {
  /** Gets the text at a URL; `bearer` is a token to send. */
  readonly fetchText: (url: string, bearer?: string) => Promise<string>;
  /** Gets the JSON value at a URL. */
  readonly fetchJson: (url: string) => Promise<unknown>;
}

export function fetcher(options: FetchOptions): Fetcher {
  return {
    async fetchText(url, bearer) {
      const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
      return (await get(url, options, { accept: "*/*", ...authorization })).toString();
    },
    async fetchJson(url) {
      const bytes = await get(url, options, { accept: "application/json" });
      try {
        return parseJson(bytes, valuesMax).value;
      } catch (cause) {
        throw new Error(`Cannot get ${url}: ${(cause as Error).message}`, { cause });
      }
    },
  };
}

async function get(
  url: string,
  { ca, timeoutMs, clock }: FetchOptions,
  headers: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const parsed = URL.parse(url);
  if (parsed === null) throw new Error(`Cannot get ${JSON.stringify(url)}: it is not a URL`);
  const { origin, pathname, search } = parsed;
  await using transport = externalTransport({ server: origin, ca: ca ?? hostAuthorities() });
  const stop = new AbortController();
  const timer = clock.timer(timeoutMs, () => stop.abort(new Error(`no response within ${timeoutMs / 1000} s`)));
  try {
    const { status, body } = await transport(
      makeRequest({ path: pathname, query: search.slice(1), headers, signal: stop.signal }),
    );
    const bytes = await readAll(body, BYTES_MAX);
    if (status !== 200) throw new Error(`the server responded with ${status}`);
    return bytes;
  } catch (cause) {
    throw new Error(`Cannot get ${url}: ${(cause as Error).message}`, { cause });
  } finally {
    timer.cancel();
  }
}

let authorities: string | undefined;

/** The authorities of Node.js and those that the host's administrator added. */
function hostAuthorities(): string {
  authorities ??= [...new Set([...getCACertificates("default"), ...getCACertificates("system")])].join("\n");
  return authorities;
}
