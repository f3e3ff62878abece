/** A manifest behind a URL, asked for again and again. */
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Clock } from "../../std/time/clock.ts";
import { type ManifestText, manifestBytesMax } from "./manifest.ts";

export interface UrlSourceOptions {
  readonly url: string;
  /** Sent with every request; a name may have several values. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly periodMs: number;
  readonly clock: Clock;
  readonly onTexts: (texts: readonly ManifestText[]) => void;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 10_000;

/** Runs until the signal aborts. Never rejects. */
export async function pollUrl(options: UrlSourceOptions): Promise<void> {
  const { periodMs, clock, signal } = options;
  while (!signal.aborted) {
    const text = await fetchManifest(options);
    if (signal.aborted) return;
    options.onTexts([text]);
    await clock.sleep(periodMs, signal).catch(() => undefined);
  }
}

/** Never rejects: what cannot be had says why. */
export async function fetchManifest(
  options: Pick<UrlSourceOptions, "url" | "headers" | "clock" | "signal">,
): Promise<ManifestText> {
  // Messages and uids must not hold what a URL may hold of passwords.
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

function get({ url, headers }: Pick<UrlSourceOptions, "url" | "headers">, signal: AbortSignal): Promise<Buffer> {
  const target = new URL(url);
  const request = target.protocol === "https:" ? requestHttps : requestHttp;
  const own = Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [...values]]));
  return new Promise((resolve, reject) => {
    const sent = request(target, { headers: own, agent: false, signal }, (response) => {
      const pieces: Buffer[] = [];
      let length = 0;
      const { statusCode = 0 } = response;
      if (statusCode !== 200) {
        response.resume();
        reject(new Error(`the server answered ${statusCode}`));
        return;
      }
      response.on("error", reject).on("data", (piece: Buffer) => {
        length += piece.length;
        if (length > manifestBytesMax) sent.destroy(new Error(`larger than ${manifestBytesMax} bytes`));
        else pieces.push(piece);
      });
      response.on("end", () => resolve(Buffer.concat(pieces)));
    });
    sent.on("error", reject).end();
  });
}
