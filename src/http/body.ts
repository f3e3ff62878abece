import { HttpError } from "./http-error.ts";
import type { HttpRequest } from "./message.ts";

/**
 * The whole body as it came: a `content-encoding` is not looked at, as in Kubernetes. Throws `HttpError` 413 when it is
 * longer than `limitBytes`, 400 when the client broke off.
 */
export async function readBody(request: Pick<HttpRequest, "headers" | "body">, limitBytes: number): Promise<Buffer> {
  // Refused before it is read, so that a client which says how much it has is not made to send it.
  if (Number(request.headers["content-length"] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of request.body) {
      length += piece.length;
      if (length > limitBytes) throw tooLarge(limitBytes);
      pieces.push(piece);
    }
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, "BadRequest", "the request body could not be read to its end", { cause: error });
  }
  return pieces.length === 1
    ? Buffer.from(pieces[0]!.buffer, pieces[0]!.byteOffset, length)
    : Buffer.concat(pieces, length);
}

function tooLarge(limitBytes: number): HttpError {
  return new HttpError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limitBytes}`);
}
