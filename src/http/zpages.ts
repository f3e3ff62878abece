/** `/flagz` and `/statusz`: the flags and the status of this server as plain text. */
import type { HttpRequest, HttpResponse } from "./message.ts";
import { type MediaType, parseAccept } from "./negotiate.ts";
import { textResponse } from "./respond.ts";

/** Kubernetes' header of both pages. */
const WARNING =
  "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is " +
  "for debugging purposes only.";

const NOT_ACCEPTABLE = "media type not acceptable, must be: text/plain\n";

/** `title`: `kube-apiserver flagz`. Flags by name; flags contain paths of secret files, not secrets. */
export function flagz(title: string, flags: Readonly<Record<string, string>>, request: HttpRequest): HttpResponse {
  const lines = Object.entries(flags)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}\n`);
  return page(`\n${title}\n${WARNING}\n\n${lines.join("")}`, request);
}

export interface ServerStatus {
  readonly startedMs: number;
  readonly nowMs: number;
  readonly runtimeVersion: string;
  /** `1.33.0` */
  readonly binaryVersion: string;
  /** The emulated version: `1.32`. */
  readonly emulationVersion: string;
}

export function statusz(component: string, status: ServerStatus, request: HttpRequest): HttpResponse {
  const { startedMs, nowMs, runtimeVersion, binaryVersion, emulationVersion } = status;
  const lines = [
    `Started: ${unixDate(new Date(startedMs))}`,
    `Up: ${uptime(nowMs - startedMs)}`,
    `Go version: ${runtimeVersion}`,
    `Binary version: ${binaryVersion}`,
    `Emulation version: ${emulationVersion}`,
  ];
  return page(`\n${component} statusz\n${WARNING}\n\n${lines.join("\n")}\n`, request);
}

/** As Go's `time.UnixDate`: `Tue Nov  4 14:58:53 UTC 2026`. */
function unixDate(time: Date): string {
  const [weekday = "", day = "", month = "", year = "", clock = ""] = time.toUTCString().split(/,? /);
  return `${weekday} ${month} ${String(Number(day)).padStart(2)} ${clock} UTC ${year}`;
}

function uptime(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`;
}

/** Kubernetes requires a header that accepts plain text. */
function page(content: string, { headers }: HttpRequest): HttpResponse {
  return parseAccept(headers.accept ?? "").some(acceptsText)
    ? textResponse(200, content)
    : textResponse(406, NOT_ACCEPTABLE, { "x-content-type-options": "nosniff" });
}

/** Other parameters than the charset are for another text. */
function acceptsText({ type, params }: MediaType): boolean {
  const [[name, value = ""] = [], ...more] = Object.entries(params);
  const isPlain = name === undefined || (name === "charset" && /^utf-8$/i.test(value));
  return TEXT_RANGES.has(type) && isPlain && more.length === 0;
}

const TEXT_RANGES: ReadonlySet<string> = new Set(["text/plain", "text/*", "*/*", "*/plain"]);
