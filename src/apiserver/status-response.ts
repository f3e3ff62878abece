import { type Status, StatusError } from "../api/status.ts";
import type { HttpResponse } from "../http/message.ts";
import { negotiate } from "../http/negotiate.ts";
import { bytes } from "../http/respond.ts";
import { encodeYaml } from "../schema/yaml.ts";

const OFFERS = [{ mediaType: "application/json" }, { mediaType: "application/yaml" }] as const;

/** Failures are always answered: what cannot be said in the form asked for is said in JSON. */
export function statusResponse(status: Status, accept: string | undefined): HttpResponse {
  return encoded(status.code, status, accept);
}

function encoded(code: number, status: object, accept: string | undefined): HttpResponse {
  const chosen = negotiate(accept, OFFERS, () => true)?.offer.mediaType;
  if (chosen === "application/yaml") return bytes(code, chosen, Buffer.from(encodeYaml(status)));
  return bytes(code, "application/json", Buffer.from(`${JSON.stringify(status)}\n`));
}

/** The path is none of ours. */
export function noSuchResource(): StatusError {
  const message = "the server could not find the requested resource";
  return new StatusError(404, "NotFound", message, { details: {} });
}

export function methodNotAllowed(): StatusError {
  const message = "the server does not allow this method on the requested resource";
  return new StatusError(405, "MethodNotAllowed", message, { details: {} });
}

export function notAcceptable(offered: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${offered.join(", ")}`;
  return new StatusError(406, "NotAcceptable", message);
}

/** `Success`, as bindings answer. */
export function success(code: number): Status {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code };
}

/** `Success` with what was deleted; such a `Status` carries no code. */
export function deletedResponse(details: Status["details"], accept: string | undefined): HttpResponse {
  const { code, ...status } = success(200);
  return encoded(code, { ...status, details }, accept);
}
