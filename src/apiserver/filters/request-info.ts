import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import type { Handler, HttpResponse } from "../../http/message.ts";
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
    const context = {
      request,
      info: parseRequestInfo(request),
      user: undefined,
      get signal() {
        return request.signal;
      },
      warnings,
      // An empty header is no id.
      auditId: request.headers["audit-id"] || randomUuid(random),
      annotations: new AuditAnnotations(),
    };
    const response = await next(context);
    return addStandardHeaders(response, warnings, context.auditId);
  };
}

function addStandardHeaders(response: HttpResponse, warnings: readonly string[], auditId: string): HttpResponse {
  const headers: Record<string, string | readonly string[]> = {
    "audit-id": auditId,
    "cache-control": "no-cache, private",
    ...response.headers,
  };
  if (warnings.length > 0) headers.warning = warningHeaders(warnings);
  return { ...response, headers };
}
