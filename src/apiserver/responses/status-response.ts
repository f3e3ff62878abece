import { type Status, StatusError } from "../../api/status.ts";
import type { ResponseStatus } from "../../audit/event.ts";
import type { RequestAudit } from "../../audit/request-audit.ts";
import type { HttpResponse } from "../../http/message.ts";
import { negotiate, type Offer } from "../../http/negotiate.ts";
import { bytesResponse } from "../../http/respond.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import type { RequestContext } from "../request/request-context.ts";
import { encodeProtobufStatus } from "./protobuf.ts";

/** A Status of success may omit its code. */
type StatusBody = Omit<Status, "code" | "details"> & {
  readonly code?: number;
  readonly details?: Status["details"] | undefined;
};

const YAML = "application/yaml";

const OFFERS = [
  { mediaType: "application/json" },
  { mediaType: YAML },
  { mediaType: "application/vnd.kubernetes.protobuf" },
  { mediaType: "application/vnd.svc.protobuf" },
] as const;

/** Encodes a Status in the negotiated media type, or as indented JSON when none is acceptable. */
export function statusResponse(status: Status, context: RequestContext): HttpResponse {
  return encodeStatus(status.code, status, context);
}

/** Records the status as the response of the request. */
export function recordStatus(audit: RequestAudit, { kind: _kind, apiVersion: _version, ...status }: StatusBody): void {
  audit.setStatus({ code: 0, ...status } as ResponseStatus);
  audit.setResponse(() => JSON.stringify({ kind: "Status", apiVersion: "v1", ...status }));
}

type Params = Readonly<Record<string, string>>;

/** Whether a clause requests another kind than the resource's own, as in Kubernetes also without `as`. */
export function requestsTransform({ as, g, v }: Params): boolean {
  return as !== undefined || g !== undefined || v !== undefined;
}

/** Whether the media type has the stream that a clause requests, if it does: YAML has none. */
export function acceptsStream({ mediaType }: Offer, { stream }: Params): boolean {
  return stream === undefined || (stream === "watch" && mediaType !== YAML);
}

/** Whether a clause accepts what has no other representations: a Status, a document of discovery. */
export function acceptsPlain(offer: Offer, params: Params): boolean {
  return !requestsTransform(params) && acceptsStream(offer, params) && params.sv === undefined;
}

function encodeStatus(
  code: number,
  status: StatusBody,
  context: RequestContext,
  mediaType: string | undefined = negotiate(context.request.headers.accept, OFFERS, acceptsPlain)?.offer.mediaType,
): HttpResponse {
  const chosen = OFFERS.find((offer) => offer.mediaType === mediaType)?.mediaType;
  // As in Kubernetes, which encodes a status that the client does not accept without the audit log.
  if (context.audit !== undefined && chosen !== undefined) recordStatus(context.audit, status);
  switch (chosen) {
    case YAML:
      return bytesResponse(code, chosen, Buffer.from(encodeYaml(status)));
    case "application/vnd.kubernetes.protobuf":
      return bytesResponse(code, chosen, encodeProtobufStatus("k8s", status));
    case "application/vnd.svc.protobuf":
      return bytesResponse(code, chosen, encodeProtobufStatus("svc", status));
    default: {
      const pretty = chosen === undefined || isPretty(context);
      const text = pretty ? JSON.stringify(status, undefined, 2) : `${JSON.stringify(status)}\n`;
      return bytesResponse(code, "application/json", Buffer.from(escapeHtml(text)));
    }
  }
}

/** Whether to indent JSON: requested by the query, or for browsers, curl and Wget. */
export function isPretty({ info, request }: RequestContext): boolean {
  const requested = info.query.get("pretty");
  if (requested !== null) return !["", "false", "0"].includes(requested);
  return /^(curl|Wget|Mozilla)/.test(request.headers["user-agent"] ?? "");
}

/** The error for unknown paths of the API. */
export function noSuchResource(): StatusError {
  const message = "the server could not find the requested resource";
  return new StatusError(404, "NotFound", message, { details: {} });
}

export function methodNotAllowed(): StatusError {
  const message = "the server does not allow this method on the requested resource";
  return new StatusError(405, "MethodNotAllowed", message, { details: {} });
}

/** The error when no offered media type is acceptable. */
export function notAcceptable(offered: readonly string[]): StatusError {
  const message = `406: Not Acceptable\n\nAvailable representations: ${offered.join(", ")}`;
  return new StatusError(406, "NotAcceptable", message, { details: {} });
}

/** The error when PartialObjectMetadata is requested for a list, or the list kind for an object. */
export function wrongMetadataKind(
  requested: "PartialObjectMetadata" | "PartialObjectMetadataList",
  goType: string,
): StatusError {
  const what = requested === "PartialObjectMetadata" ? "a list" : "not a list";
  const message = `you requested ${requested}, but the requested object is ${what} (*${goType})`;
  return new StatusError(406, "NotAcceptable", message);
}

/** The error when a media type is acceptable, but not the requested transformation (`as=`). */
export function transformNotAcceptable(offered: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${offered.join(", ")}`;
  return new StatusError(406, "NotAcceptable", message);
}

/** The Status `Success`. */
export function successStatus(code: number): Status {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code };
}

/** The Status `Success`, in the media type that was negotiated for the object. */
export function successResponse(code: number, context: RequestContext, mediaType: string): HttpResponse {
  return encodeStatus(code, successStatus(code), context, mediaType);
}

/** The Status `Success` with the deleted object; it has no code. */
export function deletedResponse(details: Status["details"], context: RequestContext, mediaType: string): HttpResponse {
  const { code, ...status } = successStatus(200);
  return encodeStatus(code, { ...status, details }, context, mediaType);
}
