/** A file as Go's `http.ServeContent` serves it: conditions, ranges and the media type of its name. */
import { randomBytes } from "node:crypto";
import { extname } from "node:path";
import { type ByteRange, parseRanges } from "../../../http/content/byte-ranges.ts";
import { sniffContentType } from "../../../http/content/sniff-content-type.ts";
import type { HttpRequest, HttpResponse, ResponseHeaders } from "../../../http/message.ts";
import { goErrorResponse } from "../go-responses.ts";

export interface Content {
  /** By its extension the media type is chosen. */
  readonly name: string;
  readonly size: number;
  readonly modified: Date;
  readonly read: (range: ByteRange) => AsyncIterable<Uint8Array>;
  /** The first bytes. */
  readonly start: () => Promise<Uint8Array>;
}

/** Those that Go has without the tables of the machine. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  ".avif": "image/avif",
  ".css": "text/css; charset=utf-8",
  ".gif": "image/gif",
  ".htm": "text/html; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".mjs": "text/javascript; charset=utf-8",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".webp": "image/webp",
  ".xml": "text/xml; charset=utf-8",
};

export async function serveContent(request: HttpRequest, content: Content): Promise<HttpResponse> {
  const { size, modified, name } = content;
  const validators = { "last-modified": modified.toUTCString() };
  const failed = checkConditions(request, modified);
  if (failed !== undefined) return { status: failed, headers: validators, body: Buffer.alloc(0) };
  const parsed = parseRanges(findRange(request, modified), size);
  if (typeof parsed === "string") {
    const range: ResponseHeaders = parsed.includes("overlap") ? { "content-range": `bytes */${size}` } : {};
    return goErrorResponse(416, parsed, range);
  }
  const mediaType = MEDIA_TYPES[extname(name).toLowerCase()] ?? (await sniff(content));
  const headers = { ...validators, "accept-ranges": "bytes", "content-type": mediaType };
  const send = (status: number, range: ByteRange, more: ResponseHeaders = {}): HttpResponse => {
    const length = { "content-length": String(range.length) };
    const body = request.method === "HEAD" || range.length === 0 ? Buffer.alloc(0) : content.read(range);
    return { status, headers: { ...headers, ...more, ...length }, body };
  };
  // More than the whole, which is what a client gains nothing by.
  const total = parsed.reduce((sum, { length }) => sum + length, 0);
  const [first, ...others] = total > size ? [] : parsed;
  if (first === undefined) return send(200, { start: 0, length: size });
  if (others.length === 0) return send(206, first, { "content-range": contentRange(first, size) });
  const boundary = randomBytes(30).toString("hex");
  const type = `multipart/byteranges; boundary=${boundary}`;
  const body = readParts(content, parsed, mediaType, boundary);
  return { status: 206, headers: { ...headers, "content-type": type }, body };
}

function contentRange({ start, length }: ByteRange, size: number): string {
  return `bytes ${start}-${start + length - 1}/${size}`;
}

async function* readParts(
  { read, size }: Content,
  ranges: readonly ByteRange[],
  mediaType: string,
  boundary: string,
): AsyncGenerator<Uint8Array> {
  for (const [index, range] of ranges.entries()) {
    const head = `--${boundary}\r\nContent-Range: ${contentRange(range, size)}\r\nContent-Type: ${mediaType}\r\n\r\n`;
    yield Buffer.from(index === 0 ? head : `\r\n${head}`);
    if (range.length > 0) yield* read(range);
  }
  yield Buffer.from(`\r\n--${boundary}--\r\n`);
}

async function sniff({ start }: Content): Promise<string> {
  return sniffContentType(await start());
}

/** The status of a condition that does not hold; undefined when all hold. Files have no entity tag. */
export function checkConditions({ method, headers }: HttpRequest, modified: Date): 304 | 412 | undefined {
  const isRead = method === "GET" || method === "HEAD";
  const { "if-match": match, "if-none-match": noneMatch } = headers;
  if (match !== undefined && match !== "") {
    if (!hasAnyTag(match)) return 412;
  } else if (compareTimes(modified, headers["if-unmodified-since"]) === "newer") return 412;
  if (noneMatch !== undefined && noneMatch !== "") {
    return hasAnyTag(noneMatch) ? (isRead ? 304 : 412) : undefined;
  }
  return isRead && compareTimes(modified, headers["if-modified-since"]) === "not newer" ? 304 : undefined;
}

/** Whether the list of entity tags has `*`, before something that is no tag. */
function hasAnyTag(list: string): boolean {
  return /^(?:[\t ,]|(?:W\/)?"[^"\s]*")*\*/.test(list);
}

/** By whole seconds; undefined without a valid time. */
function compareTimes(modified: Date, header: string | undefined): "newer" | "not newer" | undefined {
  const time = Date.parse(header ?? "");
  if (Number.isNaN(time)) return undefined;
  return toSeconds(modified.getTime()) > toSeconds(time) ? "newer" : "not newer";
}

function toSeconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000);
}

/** The header `range`, unless it is for another version of the file. */
function findRange({ method, headers }: HttpRequest, modified: Date): string {
  const { range = "", "if-range": version = "" } = headers;
  if (version === "" || (method !== "GET" && method !== "HEAD")) return range;
  const time = Date.parse(version);
  return !Number.isNaN(time) && toSeconds(time) === toSeconds(modified.getTime()) ? range : "";
}
