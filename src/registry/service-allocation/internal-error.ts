import { StatusError } from "../../api/status.ts";

/** What is not the client's fault, in Kubernetes' form. */
export function internalError(message: string): StatusError {
  const text = `Internal error occurred: ${message}`;
  return new StatusError(500, "InternalError", text, { details: { causes: [{ message }] } });
}
