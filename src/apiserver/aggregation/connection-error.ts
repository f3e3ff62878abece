/** Texts of failed connections to extension servers, as Go's libraries word them. */
import { errorText } from "../../client/webhook/webhook-errors.ts";

/** `url`: of the server, with the name that its certificate must have. */
export function describeFailure(error: unknown, url: URL): string {
  // A name with several addresses: the error of the first one.
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const { code } = first as NodeJS.ErrnoException;
  if (code === "ETIMEDOUT" || code === "ABORT_ERR") return "context deadline exceeded";
  if (code === "EPROTO" && /wrong version number|packet length too long/.test(String(first))) {
    return "tls: first record does not look like a TLS handshake";
  }
  if (code?.startsWith("HPE_") === true) return `malformed HTTP response: ${(first as Error).message}`;
  return errorText(first, url);
}
