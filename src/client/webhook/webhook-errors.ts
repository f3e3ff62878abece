/** Error messages for webhooks, as Kubernetes and Go's libraries word them. */
import { isIP } from "node:net";
import type { PeerCertificate } from "node:tls";
import { StatusError } from "../../api/status.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { hostOf } from "../transport/dial.ts";
import { hostNameErrorText } from "./host-name-error.ts";

const TEXT_MAX = 1024;

/** The errors of Kubernetes' clients for responses that are no Status. */
const MESSAGES: Readonly<Record<number, readonly [reason: string, message: string]>> = {
  400: ["BadRequest", "the server rejected our request for an unknown reason"],
  401: ["Unauthorized", "the server has asked for the client to provide credentials"],
  403: ["Forbidden", "the server does not allow access to the requested resource"],
  404: ["NotFound", "the server could not find the requested resource"],
  405: ["MethodNotAllowed", "the server does not allow this method on the requested resource"],
  429: ["TooManyRequests", "the server has received too many requests and has asked us to try again later"],
  503: ["ServiceUnavailable", "the server is currently unable to handle the request"],
  504: [
    "Timeout",
    "the server was unable to return a response in the time allotted, but may still be processing the request",
  ],
};

/** The error for a response that is no Status. */
export function responseError(status: number, text: string): StatusError {
  const standard = MESSAGES[status];
  if (standard !== undefined) return new StatusError(status, standard[0], standard[1]);
  const quoted = goQuote(text.trim().slice(0, TEXT_MAX) || "unknown");
  if (status >= 500) {
    const message = `an error on the server (${quoted}) has prevented the request from succeeding`;
    return new StatusError(status, "InternalError", message);
  }
  const isMoved = status >= 300 && status <= 399;
  const why = isMoved
    ? "redirects are not followed"
    : "the server responded with the status code but did not return more information";
  return new StatusError(status, "Unknown", `the server answered with code ${status}: ${why}`);
}

export function abortText({ reason }: AbortSignal): string {
  return reason instanceof DOMException && reason.name === "TimeoutError"
    ? "context deadline exceeded"
    : "context canceled";
}

const UNKNOWN_AUTHORITY: ReadonlySet<string> = new Set([
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
]);

/** The message of Go's libraries for a failed connection: the one that people search for. */
export function errorText(why: unknown, url: URL): string {
  const error = why as NodeJS.ErrnoException & {
    readonly address?: string;
    readonly port?: number;
    readonly cert?: PeerCertificate;
  };
  const { code = "" } = error;
  const at = `${isIP(error.address ?? "") === 6 ? `[${error.address}]` : error.address}:${error.port}`;
  if (UNKNOWN_AUTHORITY.has(code)) {
    return "tls: failed to verify certificate: x509: certificate signed by unknown authority";
  }
  switch (code) {
    case "ECONNREFUSED":
      return `dial tcp ${at}: connect: connection refused`;
    case "EHOSTUNREACH":
      return `dial tcp ${at}: connect: no route to host`;
    case "ENETUNREACH":
      return `dial tcp ${at}: connect: network is unreachable`;
    case "ETIMEDOUT":
      return `dial tcp ${at}: connect: connection timed out`;
    case "ENOTFOUND":
      return `dial tcp: lookup ${hostOf(url)}: no such host`;
    case "ECONNRESET":
    case "UND_ERR_SOCKET":
      return "EOF";
    case "CERT_HAS_EXPIRED":
    case "CERT_NOT_YET_VALID":
      return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid";
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `tls: failed to verify certificate: x509: ${hostNameErrorText(error.cert, hostOf(url))}`;
    default:
      return error.message;
  }
}
