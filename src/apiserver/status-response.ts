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

/** What answers come in; the project's own spelling of protobuf is served and not advertised. */
const ANSWERS = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAMS = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/** No media type fits. `streams`: the resource can be watched at this path. */
export function notAcceptable(streams: boolean): StatusError {
  const available = streams ? [...ANSWERS, ...STREAMS] : ANSWERS;
  const message = `406: Not Acceptable\n\nAvailable representations: ${available.join(", ")}`;
  return new StatusError(406, "NotAcceptable", message, { details: {} });
}

/** A media type fits, and the form of it that was asked for (`as=`) does not. */
export function formNotAcceptable(): StatusError {
  const message = `only the following media types are accepted: ${ANSWERS.join(", ")}`;
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
