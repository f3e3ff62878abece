/** Responses that Go's `net/http` and go-restful make by themselves in kubelet, with their texts. */
import type { HttpRequest, HttpResponse, ResponseHeaders } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";

/** `http.Error` */
export function goErrorResponse(status: number, message: string, headers: ResponseHeaders = {}): HttpResponse {
  return textResponse(status, `${message}\n`, { "x-content-type-options": "nosniff", ...headers });
}

/** `http.NotFound`: no handler has the path. */
export function pageNotFound(): HttpResponse {
  return goErrorResponse(404, "404 page not found");
}

/** A redirect of `http.ServeMux` to another path, with the query; only browsers' methods get a page. */
export function movedPermanently({ method, query }: HttpRequest, path: string): HttpResponse {
  const location = query === "" ? path : `${path}?${query}`;
  if (method !== "GET" && method !== "HEAD") return { status: 301, headers: { location }, body: Buffer.alloc(0) };
  const link = location.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const quoted = link.replaceAll('"', "&#34;").replaceAll("'", "&#39;");
  const body = method === "HEAD" ? "" : `<a href="${quoted}">Moved Permanently</a>.\n\n`;
  return {
    status: 301,
    headers: { location, "content-type": "text/html; charset=utf-8" },
    body: Buffer.from(body),
  };
}

/** go-restful: the service has no such route. */
export function routeNotFound(): HttpResponse {
  return textResponse(404, "404: Page Not Found");
}

/** go-restful: the route has other methods. */
export function methodNotAllowed(allowed: readonly string[]): HttpResponse {
  return textResponse(405, "405: Method Not Allowed", { allow: allowed.join(", ") });
}

/** go-restful: the route has one representation, and the request accepts others only. */
export function notAcceptable(mediaType: string): HttpResponse {
  return textResponse(406, `406: Not Acceptable\n\nAvailable representations: ${mediaType}`);
}

/** go-restful's rule: ranges such as `application/*` do not match. */
export function accepts(header: string | undefined, mediaType: string): boolean {
  if (header === undefined || header === "") return true;
  const ranges = header.split(",").map((range) => (range.split(";")[0] ?? "").trim());
  return ranges.some((range) => range === mediaType || range === "*/*");
}
