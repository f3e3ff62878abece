import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import type { Handler, HttpResponse, ResponseHeaders } from "../../http/message.ts";
import { type RandomSource, randomUuid } from "../../std/crypto/random.ts";
import type { RequestHandler } from "../request/request-context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { warningHeaders } from "../responses/warning-headers.ts";

/**
 * Creates the request context and adds the standard response headers: Kubernetes' WithRequestInfo, WithWarningRecorder,
 * WithAuditInit and WithCacheControl.
 */
export function withRequestInfo(next: RequestHandler, random: RandomSource): Handler {
  return async (request) => {
    const warnings: string[] = [];
    // An empty header is no id.
    const auditId = request.headers["audit-id"] || randomUuid(random);
    const responseHeaders = { "audit-id": auditId, "cache-control": "no-cache, private" };
    const context = {
      request,
      info: parseRequestInfo(request),
      user: undefined,
      get signal() {
        return request.signal;
      },
      warnings,
      auditId,
      annotations: new AuditAnnotations(),
      responseHeaders,
    };
    const response = await next(context);
    return addHeaders(response, warnings, responseHeaders);
  };
}

function addHeaders(response: HttpResponse, warnings: readonly string[], more: ResponseHeaders): HttpResponse {
  const headers: Record<string, string | readonly string[]> = { ...more, ...response.headers };
  if (warnings.length > 0) headers.warning = warningHeaders(warnings);
  return { ...response, headers };
}
