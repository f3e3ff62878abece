import { HttpError } from "./http-error.ts";
import type { HttpRequest } from "./message.ts";

/**
 * The whole body as sent: `content-encoding` is ignored, as in Kubernetes. Throws `HttpError` 413 when it is longer
 * than `limitBytes`, 400 when the client aborts.
 */
export async function readBody(
  request: Pick<HttpRequest, "headers" | "body" | "readChunks">,
  limitBytes: number,
): Promise<Buffer> {
  // By its content-length a body is refused before the client has sent it.
  if (Number(request.headers["content-length"] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const accept = (chunk: Uint8Array): boolean => {
    length += chunk.length;
    if (length <= limitBytes) chunks.push(chunk);
    return length <= limitBytes;
  };
  try {
    if (request.readChunks !== undefined) await request.readChunks(accept);
    else for await (const chunk of request.body) if (!accept(chunk)) break;
  } catch (error) {
    throw new HttpError(400, "BadRequest", "the request body could not be read to its end", { cause: error });
  }
  if (length > limitBytes) throw tooLarge(limitBytes);
  return chunks.length === 1
    ? Buffer.from(chunks[0]!.buffer, chunks[0]!.byteOffset, length)
    : Buffer.concat(chunks, length);
}

function tooLarge(limitBytes: number): HttpError {
  return new HttpError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limitBytes}`);
}
