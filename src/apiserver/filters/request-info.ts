import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import type { Handler, HttpRequest, HttpResponse } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { type RandomSource, randomUuid } from "../../std/crypto/random.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { RequestContext, RequestHandler } from "../request/request-context.ts";
import { parseRequestInfo, type RequestInfo } from "../request/request-info.ts";
import { warningHeaders } from "../responses/warning-headers.ts";

/**
 * Creates the request context and adds the standard response headers: Kubernetes' WithRequestInfo, WithWarningRecorder,
 * WithAuditInit, WithCacheControl and, with a clock, WithRequestReceivedTimestamp.
 */
export function withRequestInfo(next: RequestHandler, random: RandomSource, clock?: Clock): Handler {
  return async (request) => {
    // An empty header is no id.
    const auditId = request.headers["audit-id"] || randomUuid(random);
    const context = new ReceivedRequest(request, auditId, clock?.now());
    if (context.info.isMalformed === true) return malformedPath(request, auditId);
    return addHeaders(await next(context), context);
  };
}

function malformedPath({ path, query }: HttpRequest, auditId: string): HttpResponse {
  const uri = query === "" ? path : `${path}?${query}`;
  const reason = `failed to create RequestInfo: unable to determine kind and namespace from url, ${uri}`;
  const text = `Internal Server Error: ${goQuote(uri)}: ${reason}\n`;
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return textResponse(500, escaped, { "audit-id": auditId, "x-content-type-options": "nosniff" });
}

class ReceivedRequest implements RequestContext {
  readonly request: HttpRequest;
  readonly info: RequestInfo;
  readonly user = undefined;
  readonly warnings: string[] = [];
  readonly auditId: string;
  readonly receivedAt: number | undefined;
  readonly annotations = new AuditAnnotations();
  readonly responseHeaders: Record<string, string>;
  readonly filterTiming = { ms: undefined };

  constructor(request: HttpRequest, auditId: string, receivedAt: number | undefined) {
    this.request = request;
    this.info = parseRequestInfo(request);
    this.auditId = auditId;
    this.receivedAt = receivedAt;
    this.responseHeaders = { "audit-id": auditId, "cache-control": "no-cache, private" };
  }

  get signal(): AbortSignal {
    return this.request.signal;
  }
}

/** Headers of the handler take precedence. A connection that switches protocols, or would have, gets no others. */
function addHeaders(response: HttpResponse, { warnings, responseHeaders }: ReceivedRequest): HttpResponse {
  if (response.status === 101 || response.asReceived === true) return response;
  const headers: Record<string, string | readonly string[]> = { ...responseHeaders, ...response.headers };
  if (warnings.length > 0) headers.warning = warningHeaders(warnings);
  return { ...response, headers };
}
