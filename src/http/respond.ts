import { promisify } from "node:util";
import { createGzip, gzip } from "node:zlib";
import { composeBody } from "./compose-body.ts";
import { HttpError } from "./http-error.ts";
import type { Filter, HttpResponse, ResponseHeaders } from "./message.ts";
import { bodyLength, isStreamed } from "./server/write-body.ts";

const gzipAsync = promisify(gzip);

/** Kubernetes' level and threshold. */
const GZIP_LEVEL = 1;
const GZIP_THRESHOLD_BYTES = 128 * 1024;
const COMPRESSED = { "content-encoding": "gzip", vary: "Accept-Encoding" };

export function jsonResponse(status: number, value: unknown, headers?: ResponseHeaders): HttpResponse {
  return bytesResponse(status, "application/json", Buffer.from(JSON.stringify(value)), headers);
}

/** `text/plain; charset=utf-8` */
export function textResponse(status: number, text: string, headers?: ResponseHeaders): HttpResponse {
  return bytesResponse(status, "text/plain; charset=utf-8", Buffer.from(text), headers);
}

export function bytesResponse(
  status: number,
  mediaType: string,
  body: HttpResponse["body"],
  headers?: ResponseHeaders,
): HttpResponse {
  return { status, headers: { "content-type": mediaType, ...headers }, body };
}

/** An error as a Status object. */
export function statusResponse(
  code: number,
  reason: string,
  message: string,
  headers?: ResponseHeaders,
  details?: object,
): HttpResponse {
  const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, details, code };
  return jsonResponse(code, status, headers);
}

/** The response for something thrown. Shows the message of an `HttpError` only; other errors may contain secrets. */
export function errorResponse(error: unknown): HttpResponse {
  if (error instanceof HttpError) return statusResponse(error.code, error.reason, error.message);
  return statusResponse(500, "InternalError", "Internal error occurred: the server could not handle this request");
}

/**
 * Compresses bodies of at least `thresholdBytes` (128 KiB when absent), and finite streams, for clients that accept
 * gzip. Other streams stay uncompressed.
 */
export function compressResponses(thresholdBytes: number = GZIP_THRESHOLD_BYTES): Filter {
  return (next) => (request) => {
    const responding = next(request);
    if (request.method === "HEAD" || !acceptsGzip(request.headers["accept-encoding"])) return responding;
    return responding.then((response) => {
      const { body, headers } = response;
      if (headers["content-encoding"] !== undefined) return response;
      if (isStreamed(body)) return response.finite === true ? compressStream(response, body) : response;
      const length = bodyLength(body) ?? 0;
      return length < thresholdBytes ? response : compressResponse(response, body, length);
    });
  };
}

async function compressResponse(
  { status, headers }: HttpResponse,
  body: Uint8Array | readonly Uint8Array[],
  length: number,
): Promise<HttpResponse> {
  const whole = body instanceof Uint8Array ? body : Buffer.concat(body, length);
  const { "content-length": _, ...rest } = headers;
  return {
    status,
    headers: { ...rest, ...COMPRESSED },
    body: await gzipAsync(whole, { level: GZIP_LEVEL }),
  };
}

function compressStream(response: HttpResponse, body: AsyncIterable<Uint8Array>): HttpResponse {
  const compressed = composeBody(body, createGzip({ level: GZIP_LEVEL }));
  return { ...response, headers: { ...response.headers, ...COMPRESSED }, body: compressed };
}

/** As in Kubernetes: only the plain name `gzip` counts, weights are ignored. */
export function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined || header === "gzip") return header !== undefined;
  return header.split(",").some((clause) => clause.trim() === "gzip");
}
