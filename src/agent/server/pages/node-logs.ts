/** `/logs/`: the files of the node's log directory, as Go's `http.FileServer` serves them. */
import { createReadStream } from "node:fs";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { bytesResponse } from "../../../http/respond.ts";
import { movedPermanently, pageNotFound } from "../go-responses.ts";

/** Bytes by which the media type of a file is chosen. */
const SNIFFED_BYTES = 512;

/** `root`: `/var/log`; the request's path begins with `/logs/`. */
export async function serveNodeLogs(root: string, { path, method }: HttpRequest): Promise<HttpResponse> {
  const name = decodeName(path.slice("/logs".length));
  if (name === undefined) return pageNotFound();
  const file = join(root, name);
  try {
    const stats = await stat(file);
    if (!stats.isDirectory() && !stats.isFile()) return pageNotFound();
    const headers = { "last-modified": stats.mtime.toUTCString() };
    if (!stats.isDirectory()) {
      if (name.endsWith("/")) return movedPermanently(`../${name.split("/").at(-2) ?? ""}`);
      const mediaType = await findMediaType(file);
      const body = method === "HEAD" ? Buffer.alloc(0) : createReadStream(file, { end: Math.max(0, stats.size - 1) });
      return bytesResponse(200, mediaType, stats.size === 0 ? Buffer.alloc(0) : body, headers);
    }
    if (!name.endsWith("/")) return movedPermanently(`${name.split("/").at(-1) ?? ""}/`);
    return bytesResponse(200, "text/html; charset=utf-8", Buffer.from(await renderDirectory(file)), headers);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" || code === "EACCES") return pageNotFound();
    throw error;
  }
}

/** Undefined for a name that leaves the directory, or that is no text. */
function decodeName(encoded: string): string | undefined {
  try {
    const name = decodeURIComponent(encoded);
    return name.includes("\0") || name.split("/").includes("..") ? undefined : name;
  } catch {
    return undefined;
  }
}

async function renderDirectory(directory: string): Promise<string> {
  const entries = await readdir(directory, { withFileTypes: true });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  const links = names.map((name) => `<a href="${escapeHtml(encodeURI(name))}">${escapeHtml(name)}</a>\n`);
  return `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${links.join("")}</pre>\n`;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&#34;")
    .replaceAll("'", "&#39;");
}

/** Text unless it has bytes that text does not have. */
async function findMediaType(file: string): Promise<string> {
  await using handle = await open(await realpath(file));
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(SNIFFED_BYTES), 0, SNIFFED_BYTES, 0);
  const start = buffer.subarray(0, bytesRead);
  if (start.length > 1 && start[0] === 0x1f && start[1] === 0x8b) return "application/x-gzip";
  const isBinary = start.some((byte) => byte < 0x09 || byte === 0x0b || (byte > 0x0d && byte < 0x1b));
  return isBinary ? "application/octet-stream" : "text/plain; charset=utf-8";
}
