import { HttpError } from "./http-error.ts";
import type { HttpRequest } from "./message.ts";

/**
 * The whole body as sent: `content-encoding` is ignored, as in Kubernetes. Throws `HttpError` 413 when it is longer
 * than `limitBytes`, 400 when the client aborts.
 */
export async function readBody(request: Pick<HttpRequest, "headers" | "body">, limitBytes: number): Promise<Buffer> {
  // By its content-length a body is refused before the client has sent it.
  if (Number(request.headers["content-length"] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of request.body) {
      length += chunk.length;
      if (length > limitBytes) throw tooLarge(limitBytes);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, "BadRequest", "the request body could not be read to its end", { cause: error });
  }
  return chunks.length === 1
    ? Buffer.from(chunks[0]!.buffer, chunks[0]!.byteOffset, length)
    : Buffer.concat(chunks, length);
}

function tooLarge(limitBytes: number): HttpError {
  return new HttpError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limitBytes}`);
}
