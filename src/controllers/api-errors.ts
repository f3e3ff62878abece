/** Error responses that controllers expect. */
import { StatusError } from "../api/status.ts";

/** The HTTP status of an error response; undefined for other errors. */
export function statusCodeOf(error: unknown): number | undefined {
  return error instanceof StatusError ? error.status.code : undefined;
}

/** Whether the server may have executed the request though it failed: the connection broke, or the server did. */
export function isUnanswered(error: unknown): boolean {
  const response = error instanceof Error && error.cause instanceof StatusError ? error.cause : error;
  return (statusCodeOf(response) ?? 500) >= 500;
}

/** The object was deleted or changed by another client: its informer or watch starts another sync. */
export function isNotFoundOrConflict(error: unknown): boolean {
  const code = statusCodeOf(error);
  return code === 404 || code === 409;
}

/** The name of a create request is taken. Another conflict, as of a quota, can succeed with a retry. */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof StatusError && error.status.reason === "AlreadyExists";
}
