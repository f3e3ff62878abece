import type { Handler, HttpResponse } from "../../http/message.ts";
import { type RandomSource, uuid } from "../../std/random.ts";
import type { Respond } from "../context.ts";
import { requestInfo } from "../request-info.ts";

/** More would make the answer's headers larger than clients accept. */
const WARNINGS_BYTES_MAX = 4096;

/** Turns an HTTP request into a context, and gives every answer the headers that all answers have. */
export function receive(next: Respond, random: RandomSource): Handler {
  return async (request) => {
    const warnings: string[] = [];
    const context = {
      request,
      info: requestInfo(request),
      user: undefined,
      get signal() {
        return request.signal;
      },
      warnings,
    };
    const response = await next(context);
    return withHeaders(response, warnings, request.headers["audit-id"] ?? uuid(random));
  };
}

function withHeaders(response: HttpResponse, warnings: readonly string[], auditId: string): HttpResponse {
  const headers: Record<string, string> = {
    "audit-id": auditId,
    "cache-control": "no-cache, private",
    ...response.headers,
  };
  if (warnings.length > 0) headers.warning = warningHeader(warnings);
  return { ...response, headers };
}

/** RFC 7234: `299 - "text"`, each warning once. */
function warningHeader(warnings: readonly string[]): string {
  let header = "";
  for (const warning of new Set(warnings)) {
    const text = `299 - "${warning.replace(/[\\"]/g, "\\$&").replace(/[^\x20-\x7e]/g, "?")}"`;
    const longer = header === "" ? text : `${header}, ${text}`;
    if (longer.length > WARNINGS_BYTES_MAX) break;
    header = longer;
  }
  return header;
}
