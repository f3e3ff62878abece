/**
 * A failure of HTTP itself, below any API: body too large, encoding refused. The server answers with it as a `Status`
 * object, whoever threw it.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code: number;
  /** In Kubernetes' words: `RequestEntityTooLarge`. */
  readonly reason: string;

  constructor(code: number, reason: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.reason = reason;
  }
}
