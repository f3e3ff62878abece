import { type Status, StatusError } from "../../api/status.ts";
import { HttpError } from "../../http/http-error.ts";
import type { HttpResponse } from "../../http/message.ts";
import { TooManyValuesError } from "../../schema/value/limits.ts";
import type { Logger } from "../../std/log/logger.ts";
import { StoreError } from "../../storage/store.ts";
import type { RequestFilter } from "../request/request-context.ts";
import { statusResponse } from "../responses/status-response.ts";
import { logStatusStack } from "./request-log.ts";

/** Converts errors that handlers and inner filters throw to a `Status` in the negotiated media type. */
export function withErrorResponses(log: Logger): RequestFilter {
  return (next) => async (context) => {
    try {
      return await next(context);
    } catch (error) {
      const { request } = context;
      const status = toStatus(error);
      if (status.code >= 500) logStatusStack(request, error);
      if (status.code >= 500 && !request.signal.aborted) {
        const where = { method: request.method, path: request.path };
        if (!isClientError(error)) log.error("Failed to handle a request", error, where);
        // Without the message, which quotes the patch: it can contain secrets.
        else log.v(2)?.info("Rejected a request with a server error", where);
      }
      return withRetryAfter(statusResponse(status, context), status);
    }
  };
}

/** Whether the status is 5xx only because Kubernetes uses it for some invalid patches and bodies, without a reason. */
function isClientError(error: unknown): boolean {
  return error instanceof StatusError && error.status.code === 500 && error.status.reason === undefined;
}

/** Whether no handler throws such an error on purpose. */
export function isUnexpected(error: unknown): boolean {
  return !(
    error instanceof StatusError ||
    error instanceof HttpError ||
    error instanceof StoreError ||
    error instanceof TooManyValuesError
  );
}

/** The Status of an error. Messages of unexpected errors are not sent, because they may contain secrets. */
export function toStatus(error: unknown): Status {
  if (error instanceof StatusError) return error.status;
  if (error instanceof HttpError) return new StatusError(error.code, error.reason, error.message).status;
  if (error instanceof StoreError) return storeStatus(error);
  if (error instanceof TooManyValuesError) {
    return new StatusError(413, "RequestEntityTooLarge", `Request entity too large: ${error.message}`).status;
  }
  return new StatusError(500, "InternalError", "Internal error occurred: the server could not handle this request")
    .status;
}

function storeStatus(error: StoreError): Status {
  switch (error.code) {
    case "compacted":
      return new StatusError(410, "Expired", "The resourceVersion for the provided watch is too old.").status;
    case "closed":
    case "unavailable":
      return new StatusError(503, "ServiceUnavailable", "the store is not available", {
        details: { retryAfterSeconds: 1 },
      }).status;
    case "no-space":
      // As Kubernetes passes on etcd's error. Without a Retry-After clients do not retry at once.
      return new StatusError(
        500,
        "",
        "etcdserver: mvcc: database space exceeded: the store is full; delete objects, or give it more space",
      ).status;
    default:
      return new StatusError(500, "InternalError", `Internal error occurred: ${error.message}`, {
        details: { causes: [{ message: error.message }] },
      }).status;
  }
}

function withRetryAfter(response: HttpResponse, status: Status): HttpResponse {
  const seconds = status.details?.retryAfterSeconds;
  if (seconds === undefined) return response;
  return { ...response, headers: { ...response.headers, "retry-after": String(seconds) } };
}
