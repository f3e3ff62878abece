import type { Filter, HttpRequest, HttpResponse } from "../../http/message.ts";
import { bytesResponse } from "../../http/respond.ts";

const ALLOWED_METHODS = "POST, GET, OPTIONS, PUT, DELETE, PATCH";
const ALLOWED_HEADERS =
  "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since";

/**
 * Adds CORS headers for origins that match one of the regular expressions and responds to their preflight requests.
 * Requests of other origins pass unchanged.
 */
export function withCors(origins: readonly string[]): Filter {
  if (origins.length === 0) return (next) => next;
  const patterns = origins.map((origin) => new RegExp(origin, "u"));
  return (next) => async (request) => {
    const origin = request.headers.origin;
    if (origin === undefined || !patterns.some((pattern) => pattern.test(origin))) return await next(request);
    return addCorsHeaders(
      isPreflight(request) ? bytesResponse(204, "text/plain", new Uint8Array()) : await next(request),
      origin,
    );
  };
}

function isPreflight({ method }: HttpRequest): boolean {
  return method === "OPTIONS";
}

function addCorsHeaders(response: HttpResponse, origin: string): HttpResponse {
  const headers = {
    ...response.headers,
    "access-control-allow-origin": origin,
    "access-control-allow-methods": ALLOWED_METHODS,
    "access-control-allow-headers": ALLOWED_HEADERS,
    "access-control-expose-headers": "Date",
    "access-control-allow-credentials": "true",
  };
  return { ...response, headers };
}
