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

async function get({ url, headers }: Pick<UrlSourceOptions, "url" | "headers">, signal: AbortSignal): Promise<Buffer> {
  const { origin, pathname, search, username, password } = new URL(url);
  const rawHeaders = Object.entries(headers).flatMap(([name, values]) => values.flatMap((value) => [name, value]));
  if (username !== "") rawHeaders.push("authorization", basicAuthorization(username, password));
  await using transport = externalTransport({ server: origin });
  const request = { ...makeRequest({ path: pathname, query: search.slice(1), signal }), rawHeaders };
  const { status, body } = await transport(request);
  if (status !== 200) throw new Error(`the server answered ${status}`);
  const content = await readAll(body, manifestBytesMax + 1);
  if (content.length > manifestBytesMax) throw new Error(`larger than ${manifestBytesMax} bytes`);
  return content;
}

/** Of the user in a URL, whose parts are percent-encoded. */
function basicAuthorization(username: string, password: string): string {
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}
