/** The paths of the agent's server and their routes, with the answers of Go's routers to what has none. */
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { Router } from "../../http/router.ts";
import { methodNotAllowed, movedPermanently, routeNotFound } from "./go-responses.ts";

export type Route = (request: HttpRequest, params: Readonly<Record<string, string>>) => Promise<HttpResponse>;

/** What Go's `http.ServeMux` does, for paths as they are sent: percent-encoded letters match nothing. */
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
  service(root: string, pattern: string, route: Route): void {
    this.services(root, [pattern], ["GET"], route);
  }

  /** A service of go-restful with the same route for several paths and methods. */
  services(root: string, patterns: readonly string[], methods: readonly string[], route: Route): void {
    const router = new Router<Route>();
    for (const pattern of patterns) for (const method of methods) router.add(method, `${root}${pattern}`, route);
    this.prefix(root, async (request) => {
      const match = router.match(request.method, request.path);
      if (match === undefined) return routeNotFound();
      return "value" in match ? await match.value(request, match.params) : methodNotAllowed(match.allowed);
    });
  }

  find(path: string): Route | undefined {
    const exact = this.#paths.get(path);
    if (exact !== undefined) return exact;
    for (const [root, route] of this.#prefixes) if (path === root || path.startsWith(`${root}/`)) return route;
    return undefined;
  }

  findRedirect(path: string): HttpResponse | undefined {
    return this.#redirects.has(path) ? movedPermanently(`${path}/`) : undefined;
  }
}
