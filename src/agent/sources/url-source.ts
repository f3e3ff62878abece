/** A pod manifest at a URL, fetched at an interval. */
import { readAll } from "../../client/response.ts";
import { externalTransport } from "../../client/transport/external-transport.ts";
import { makeRequest } from "../../http/request.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type ManifestText, manifestBytesMax } from "./manifest.ts";

export interface UrlSourceOptions {
  readonly url: string;
  /** Sent with every request; a name may have several values. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly periodMs: number;
  readonly clock: Clock;
  /** The next texts are read when it has finished. */
  readonly onTexts: (texts: readonly ManifestText[]) => MaybePromise<void>;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 10_000;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const REQUESTS_MAX = 10;
const SECRET_HEADERS: ReadonlySet<string> = new Set(["authorization", "cookie", "cookie2", "www-authenticate"]);

/** Runs until the signal aborts. Never rejects. */
export async function pollUrl(options: UrlSourceOptions): Promise<void> {
  const { periodMs, clock, signal } = options;
  while (!signal.aborted) {
    const text = await fetchManifest(options);
    if (signal.aborted) return;
    await options.onTexts([text]);
    await clock.sleep(periodMs, signal).catch(() => undefined);
  }
}

/** Never rejects: a failure becomes the problem of the manifest. */
export async function fetchManifest(
  options: Pick<UrlSourceOptions, "url" | "headers" | "clock" | "signal">,
): Promise<ManifestText> {
  // Messages and uids must not contain the password of a URL.
  const name = removePassword(options.url);
  const limit = new AbortController();
  const timer = options.clock.timer(TIMEOUT_MS, () => limit.abort(new Error("no answer in 10 seconds")));
  try {
    const content = await get(options, AbortSignal.any([options.signal, limit.signal]));
    return { name, content };
  } catch (error) {
    const cause = limit.signal.aborted ? limit.signal.reason : error;
    return { name, content: { problem: `cannot be fetched: ${(cause as Error).message}` } };
  } finally {
    timer.cancel();
  }
}

export function removePassword(text: string): string {
  const url = new URL(text);
  url.username = "";
  url.password = "";
  return url.href;
}

async function get(
  { url: text, headers }: Pick<UrlSourceOptions, "url" | "headers">,
  signal: AbortSignal,
): Promise<Buffer> {
  const start = new URL(text);
  let url = start;
  for (let requests = 1; ; requests++) {
    const { origin, pathname, search } = url;
    await using transport = externalTransport({ server: origin });
    const request = makeRequest({ path: pathname, query: search.slice(1), signal });
    const {
      status,
      headers: received,
      body,
    } = await transport({
      ...request,
      rawHeaders: listHeaders(headers, url, start),
    });
    const next = REDIRECTS.has(status) ? URL.parse(String(received.location ?? ""), url) : null;
    if (next === null) {
      if (status !== 200) throw new Error(`the server answered ${status}`);
      const content = await readAll(body, manifestBytesMax + 1);
      if (content.length > manifestBytesMax) throw new Error(`larger than ${manifestBytesMax} bytes`);
      return content;
    }
    if (requests === REQUESTS_MAX) throw new Error(`stopped after ${REQUESTS_MAX} redirects`);
    url = next;
  }
}

/** As of Go's client: credentials are not sent to other domains, and a URL's user only without other ones. */
function listHeaders(headers: UrlSourceOptions["headers"], url: URL, start: URL): readonly string[] {
  const isSameDomain = url.hostname === start.hostname || url.hostname.endsWith(`.${start.hostname}`);
  const sent = Object.entries(headers).filter(([name]) => isSameDomain || !SECRET_HEADERS.has(name.toLowerCase()));
  const raw = sent.flatMap(([name, values]) => values.flatMap((value) => [name, value]));
  const hasOwn = sent.some(([name]) => name.toLowerCase() === "authorization");
  const { username, password } = url;
  if (username === "" || hasOwn) return raw;
  return [...raw, "authorization", basicAuthorization(username, password)];
}

/** Of the user in a URL, whose parts are percent-encoded. */
function basicAuthorization(username: string, password: string): string {
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}
