import { StatusError } from "../../api/status.ts";

/** An InternalError as Kubernetes formats it. */
export function internalError(message: string): StatusError {
  const text = `Internal error occurred: ${message}`;
  return new StatusError(500, "InternalError", text, { details: { causes: [{ message }] } });
}
