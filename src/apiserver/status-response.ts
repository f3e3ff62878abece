import { type Status, StatusError } from "../api/status.ts";
import type { HttpResponse } from "../http/message.ts";
import { negotiate } from "../http/negotiate.ts";
import { bytes } from "../http/respond.ts";
import { encodeYaml } from "../schema/yaml.ts";
import type { RequestContext } from "./context.ts";

const OFFERS = [{ mediaType: "application/json" }, { mediaType: "application/yaml" }] as const;

/** Failures are always answered: what cannot be said in the form asked for is said in JSON. */
export function statusResponse(status: Status, context: RequestContext): HttpResponse {
  return encoded(status.code, status, context);
}

function encoded(code: number, status: object, context: RequestContext): HttpResponse {
  const chosen = negotiate(context.request.headers.accept, OFFERS, () => true)?.offer.mediaType;
  if (chosen === "application/yaml") return bytes(code, chosen, Buffer.from(encodeYaml(status)));
  const text = isPretty(context) ? JSON.stringify(status, undefined, 2) : `${JSON.stringify(status)}\n`;
  return bytes(code, "application/json", Buffer.from(text));
}

/** Indented for people: asked for, or a browser or a command line tool that shows answers as they come. */
export function isPretty({ info, request }: RequestContext): boolean {
  const asked = info.query.get("pretty");
  if (asked !== null) return !["", "false", "0"].includes(asked);
  return /^(curl|Wget|Mozilla)/.test(request.headers["user-agent"] ?? "");
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

/** None of the media types that are offered fits. */
export function notAcceptable(offered: readonly string[]): StatusError {
  const message = `406: Not Acceptable\n\nAvailable representations: ${offered.join(", ")}`;
  return new StatusError(406, "NotAcceptable", message, { details: {} });
}

/** A media type fits, but not the form of it that was asked for (`as=`). */
export function formNotAcceptable(offered: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${offered.join(", ")}`;
  return new StatusError(406, "NotAcceptable", message);
}

/** `Success`, as bindings answer. */
export function success(code: number): Status {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code };
}

/** `Success` with what was deleted; such a `Status` carries no code. */
export function deletedResponse(details: Status["details"], context: RequestContext): HttpResponse {
  const { code, ...status } = success(200);
  return encoded(code, { ...status, details }, context);
}
