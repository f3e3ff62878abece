/** `/logs/`: the files of the node's log directory, as Go's `http.FileServer` serves them. */
import { createReadStream } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join, posix } from "node:path";
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { bytesResponse } from "../../../http/respond.ts";
import { goErrorResponse, pageNotFound } from "../go-responses.ts";
import { checkConditions, serveContent } from "./serve-content.ts";

/** Bytes by which the media type of a file is chosen. */
const SNIFFED_BYTES = 512;
const INDEX = "index.html";

/** `root`: `/var/log`; the request's path begins with `/logs/`. */
export async function serveNodeLogs(root: string, request: HttpRequest): Promise<HttpResponse> {
  const name = decodeName(request.path.slice("/logs".length));
  if (name === undefined) return pageNotFound();
  if (name.includes("\0")) return goErrorResponse(500, "500 Internal Server Error");
  try {
    if (name.endsWith(`/${INDEX}`)) return redirect(request, "./");
    return await serveName(root, name, request);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return pageNotFound();
    if (code === "EACCES" || code === "EPERM") return goErrorResponse(403, "403 Forbidden");
    if (code === "ELOOP" || code === "ENAMETOOLONG") return goErrorResponse(500, "500 Internal Server Error");
    throw error;
  }
}

async function serveName(root: string, name: string, request: HttpRequest): Promise<HttpResponse> {
  // Names do not leave the directory: `..` in its root is the root.
  const clean = posix.normalize(name).replace(/(?<=.)\/$/, "");
  const file = join(root, clean);
  const stats = await stat(file);
  if (!stats.isDirectory()) {
    // Devices and pipes could block.
    if (!stats.isFile()) return pageNotFound();
    return name.endsWith("/")
      ? redirect(request, `../${posix.basename(name)}`)
      : await serveFile(file, stats.size, stats.mtime, request);
  }
  if (!name.endsWith("/")) return redirect(request, `${posix.basename(name)}/`);
  const index = await stat(join(file, INDEX)).catch(() => undefined);
  if (index?.isFile() === true) return await serveFile(join(file, INDEX), index.size, index.mtime, request);
  const headers = { "last-modified": stats.mtime.toUTCString() };
  const { "if-modified-since": since } = request.headers;
  const onlySince = { ...request, headers: since === undefined ? {} : { "if-modified-since": since } };
  if (checkConditions(onlySince, stats.mtime) !== undefined) return { status: 304, headers, body: Buffer.alloc(0) };
  return bytesResponse(200, "text/html; charset=utf-8", Buffer.from(await renderDirectory(file)), headers);
}

async function serveFile(file: string, size: number, modified: Date, request: HttpRequest): Promise<HttpResponse> {
  return await serveContent(request, {
    name: file,
    size,
    modified,
    read: ({ start, length }) => createReadStream(file, { start, end: start + length - 1 }),
    start: () => readStart(file),
  });
}

/** Of the file server: with the query, and without a text. */
function redirect({ query }: HttpRequest, path: string): HttpResponse {
  const encoded = path.replace(/[^\x20-\x7e]+/g, encodeURIComponent);
  const location = query === "" ? encoded : `${encoded}?${query}`;
  return { status: 301, headers: { location }, body: Buffer.alloc(0) };
}

/** Undefined for a name that is no text. */
function decodeName(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

async function renderDirectory(directory: string): Promise<string> {
  const entries = await readdir(directory, { withFileTypes: true });
  const links = entries
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .map((name) => `<a href="${escapeHtml(encodePath(name))}">${escapeHtml(name)}</a>\n`);
  return `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${links.join("")}</pre>\n`;
}

/** As Go's `url.URL` writes a relative path. */
function encodePath(name: string): string {
  const escaped = encodeURIComponent(name)
    .replace(/%(?:24|26|2B|2C|2F|3A|3B|3D|40)/g, decodeURIComponent)
    .replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
  // What precedes a colon would be a scheme.
  return /^[^/]*:/.test(escaped) ? `./${escaped}` : escaped;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&#34;")
    .replaceAll("'", "&#39;");
}

async function readStart(file: string): Promise<Uint8Array> {
  await using handle = await open(file);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(SNIFFED_BYTES), 0, SNIFFED_BYTES, 0);
  return buffer.subarray(0, bytesRead);
}
