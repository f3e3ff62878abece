import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { HttpError } from "./http-error.ts";
import type { Filter, Headers, HttpResponse } from "./message.ts";
import { bodyLength, isStreamed } from "./stream.ts";

const gzipAsync = promisify(gzip);

/** As Kubernetes: the fastest level, and only where it is worth it. */
const GZIP_LEVEL = 1;
const GZIP_THRESHOLD_BYTES = 128 * 1024;

export function json(status: number, value: unknown, headers?: Headers): HttpResponse {
  return bytes(status, "application/json", Buffer.from(JSON.stringify(value)), headers);
}

/** `text/plain; charset=utf-8` */
export function text(status: number, text: string, headers?: Headers): HttpResponse {
  return bytes(status, "text/plain; charset=utf-8", Buffer.from(text), headers);
}

export function bytes(status: number, mediaType: string, body: HttpResponse["body"], headers?: Headers): HttpResponse {
  return { status, headers: { "content-type": mediaType, ...headers }, body };
}

/** A failure in the form every client of the API reads. */
export function statusJson(code: number, reason: string, message: string, headers?: Headers): HttpResponse {
  const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
  return json(code, status, headers);
}

/** What the client is told of something thrown. Only `HttpError` is meant for it; anything else may carry secrets. */
export function errorResponse(error: unknown): HttpResponse {
  if (error instanceof HttpError) return statusJson(error.code, error.reason, error.message);
  return statusJson(500, "InternalError", "Internal error occurred: the server could not handle this request");
}

/**
 * Compresses bodies of at least `thresholdBytes` (128 KiB when absent) for clients that accept gzip. Streams are left
 * alone.
 */
export function compression(thresholdBytes: number = GZIP_THRESHOLD_BYTES): Filter {
  return (next) => async (request) => {
    const response = await next(request);
    const { body, headers } = response;
    if (isStreamed(body) || headers["content-encoding"] !== undefined || request.method === "HEAD") return response;
    const length = bodyLength(body) ?? 0;
    if (length < thresholdBytes || !acceptsGzip(request.headers["accept-encoding"])) return response;
    const whole = body instanceof Uint8Array ? body : Buffer.concat(body, length);
    const { "content-length": _, ...rest } = headers;
    return {
      status: response.status,
      headers: { ...rest, "content-encoding": "gzip", vary: "Accept-Encoding" },
      body: await gzipAsync(whole, { level: GZIP_LEVEL }),
    };
  };
}

export function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined) return false;
  for (const clause of header.split(",")) {
    const [coding, ...params] = clause.split(";").map((part) => part.trim().toLowerCase());
    if (coding !== "gzip" && coding !== "*") continue;
    return !params.some((param) => /^q=0(\.0*)?$/.test(param));
  }
  return false;
}
