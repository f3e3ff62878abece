/**
 * An error of HTTP itself, below any API: body too large, encoding not supported. The server responds with it as a
 * `Status` object.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code: number;
  /** Reason of the Status: `RequestEntityTooLarge`. */
  readonly reason: string;

  constructor(code: number, reason: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.reason = reason;
  }
}
