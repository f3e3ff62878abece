import { ByteChunks } from "../std/collections/byte-chunks.ts";
import { HttpError } from "./http-error.ts";
import type { HttpRequest } from "./message.ts";

/**
 * The whole body as sent: `content-encoding` is ignored, as in Kubernetes. Throws `HttpError` 413 when it is longer
 * than `limitBytes`, 400 when the client aborts.
 */
export async function readBody(
  request: Pick<HttpRequest, "headers" | "body" | "bodyLength" | "readChunks">,
  limitBytes: number,
): Promise<Buffer> {
  // By its content-length a body is refused before the client has sent it.
  if (Number(request.headers["content-length"] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  const chunks = new ByteChunks();
  const accept = (chunk: Uint8Array): boolean => {
    chunks.add(chunk);
    return chunks.length <= limitBytes;
  };
  try {
    if (request.readChunks !== undefined) await request.readChunks(accept);
    else for await (const chunk of request.body) if (!accept(chunk)) break;
  } catch (error) {
    throw new HttpError(400, "BadRequest", "the request body could not be read to its end", { cause: error });
  }
  if (chunks.length > limitBytes) throw tooLarge(limitBytes);
  request.bodyLength = chunks.length;
  return chunks.concat();
}

function tooLarge(limitBytes: number): HttpError {
  return new HttpError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limitBytes}`);
}
