/** The paths of the agent's server and their routes, with the answers of Go's routers to what has none. */
import { posix } from "node:path";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { Router } from "../../http/router.ts";
import { accepts, methodNotAllowed, movedPermanently, notAcceptable, routeNotFound } from "./go-responses.ts";

export type Route = (request: HttpRequest, params: Readonly<Record<string, string>>) => Promise<HttpResponse>;

export interface ServiceOptions {
  readonly patterns: readonly string[];
  readonly methods: readonly string[];
  /** Of the responses; with none the routes serve clients that accept any type only. */
  readonly mediaType?: string | undefined;
}

/** What Go's `http.ServeMux` does, and go-restful below the roots of services. */
export class Endpoints {
  readonly #paths = new Map<string, Route>();
  readonly #prefixes = new Map<string, Route>();
  readonly #redirects = new Set<string>();

  /** One path, any method. */
  path(path: string, route: Route): void {
    this.#paths.set(path, route);
  }

  /** All paths below the root, any method. */
  prefix(root: string, route: Route): void {
    this.#prefixes.set(root, route);
  }

  /** The root itself redirects to the path with a slash at its end. */
  redirect(root: string): void {
    this.#redirects.add(root);
  }

  /** A service of go-restful with one GET route. */
  service(root: string, pattern: string, mediaType: string, route: Route): void {
    this.services(root, { patterns: [pattern], methods: ["GET"], mediaType }, route);
  }

  /** A service of go-restful with the same route for several paths and methods. */
  services(root: string, { patterns, methods, mediaType = "" }: ServiceOptions, route: Route): void {
    const router = new Router<Route>();
    for (const pattern of patterns) for (const method of methods) router.add(method, `${root}${pattern}`, route);
    this.prefix(root, async (request) => {
      // go-restful's paths are decoded: an encoded slash separates segments too.
      const match = router.match(request.method, decodeSegments(request.path).replaceAll("%2F", "/"));
      if (match === undefined) return routeNotFound();
      if (!("value" in match)) return methodNotAllowed(match.allowed);
      if (!accepts(request.headers.accept, mediaType)) return notAcceptable(mediaType);
      return await match.value(request, match.params);
    });
  }

  /** `encoded`: as in a request. */
  find(encoded: string): Route | undefined {
    const path = decodeSegments(encoded);
    const exact = this.#paths.get(path);
    if (exact !== undefined) return exact;
    for (const [root, route] of this.#prefixes) if (path === root || path.startsWith(`${root}/`)) return route;
    return undefined;
  }

  /** Paths with empty segments, `.` or `..` redirect to the same without them, whether that is served or not. */
  findRedirect(request: HttpRequest): HttpResponse | undefined {
    const path = cleanPath(request.path);
    const root = decodeSegments(path);
    if (this.#redirects.has(root)) return movedPermanently(request, `${root}/`);
    return path === request.path ? undefined : movedPermanently(request, path);
  }
}

/**
 * The path in one form of its many: each segment decoded, as Go matches it, and encoded again, so that a slash that was
 * encoded stays so. A segment that is no text stays as it is.
 */
export function decodeSegments(path: string): string {
  return path.includes("%") ? path.split("/").map(decodeSegment).join("/") : path;
}

function decodeSegment(segment: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(segment));
  } catch {
    return segment;
  }
}

const UNCLEAN = /\/(?:\/|\.\.?(?:\/|$))/;

function cleanPath(path: string): string {
  return UNCLEAN.test(path) ? posix.normalize(path) : path;
}
