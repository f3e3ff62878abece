import type { HttpRequest } from "./message.ts";

/**
 * The whole body. Throws `HttpError` 413 when it is longer than `limitBytes`, 415 when it is compressed, 400 when the
 * client broke off.
 */
export declare function readBody(request: Pick<HttpRequest, "headers" | "body">, limitBytes: number): Promise<Buffer>;
