import { createTextRecord } from "../std/collections/text-record.ts";

export interface RouteMatch<T> {
  readonly value: T;
  /** Percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
}

/** The path exists, but not with this method. */
export interface MethodMismatch {
  readonly allowed: readonly string[];
}

interface Route<T> {
  readonly value: T;
  /** Names of the parameters in the order of their segments. */
  readonly names: readonly string[];
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  parameter: Node<T> | undefined;
  readonly routes: Map<string, Route<T>>;
  readonly tailRoutes: Map<string, Route<T>>;
}

/**
 * Finds a value by method and path, in a tree of path segments. A pattern has literal segments, `{name}` for one
 * segment and, at its end, `{name*}` for the rest of the path (possibly nothing):
 * `/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path*}`. A literal segment wins over `{name}`, which wins over
 * `{name*}`. An empty segment matches a literal one only.
 */
export class Router<T> {
  readonly #root: Node<T> = createNode();

  /** Throws when the pattern is malformed or exists already. */
  add(method: string, pattern: string, value: T): void {
    if (!pattern.startsWith("/")) throw new Error(`Cannot add route ${pattern}: it does not start with a slash`);
    const names: string[] = [];
    let node = this.#root;
    let routes = node.routes;
    const segments = pattern === "/" ? [] : pattern.slice(1).split("/");
    if (segments.at(-1) === "") throw new Error(`Cannot add route ${pattern}: it has an empty segment at its end`);
    for (const [index, segment] of segments.entries()) {
      const parameter = parseParameter(pattern, segment);
      if (parameter === undefined) {
        node = addLiteral(node, segment);
      } else {
        if (names.includes(parameter.name)) throw new Error(`Cannot add route ${pattern}: ${segment} appears twice`);
        names.push(parameter.name);
        if (parameter.rest) {
          if (index !== segments.length - 1)
            throw new Error(`Cannot add route ${pattern}: ${segment} is not at its end`);
          routes = node.tailRoutes;
          break;
        }
        node.parameter ??= createNode();
        node = node.parameter;
      }
      routes = node.routes;
    }
    if (routes.has(method)) throw new Error(`Cannot add route ${method} ${pattern}: it exists already`);
    routes.set(method, { value, names });
  }

  /** `path` is percent-encoded. Ignores one trailing slash. */
  match(method: string, path: string): RouteMatch<T> | MethodMismatch | undefined {
    if (!path.startsWith("/")) return undefined;
    const segments = path === "/" ? [] : path.slice(1).split("/");
    let match: RouteMatch<T> | undefined;
    let allowed: Set<string> | undefined;
    visitMatches(this.#root, segments, 0, [], (routes, values) => {
      const route = routes.get(method);
      if (route !== undefined) {
        match = { value: route.value, params: toParams(route.names, values) };
        return true;
      }
      allowed ??= new Set();
      for (const other of routes.keys()) allowed.add(other);
      return false;
    });
    return match ?? (allowed === undefined ? undefined : { allowed: [...allowed].sort() });
  }
}

function createNode<T>(): Node<T> {
  return { literals: new Map(), parameter: undefined, routes: new Map(), tailRoutes: new Map() };
}

function addLiteral<T>(node: Node<T>, segment: string): Node<T> {
  let child = node.literals.get(segment);
  if (child === undefined) {
    child = createNode();
    node.literals.set(segment, child);
  }
  return child;
}

function parseParameter(
  pattern: string,
  segment: string,
): { readonly name: string; readonly rest: boolean } | undefined {
  if (!/[{}]/.test(segment)) return undefined;
  const match = /^\{(\w+)(\*?)\}$/.exec(segment);
  if (match === null) throw new Error(`Cannot add route ${pattern}: ${segment} is neither literal nor a parameter`);
  return { name: match[1]!, rest: match[2] === "*" };
}

/**
 * Calls `visit` with each node that the path matches, best first, until it returns true; returns whether it did. As
 * deep as the deepest pattern, however long the path. Restores `values` when it returns false.
 */
function visitMatches<T>(
  node: Node<T>,
  segments: readonly string[],
  index: number,
  values: string[],
  visit: (routes: Node<T>["routes"], values: readonly string[]) => boolean,
): boolean {
  const atEnd = index === segments.length || (index === segments.length - 1 && segments[index] === "");
  if (atEnd && node.routes.size > 0 && visit(node.routes, values)) return true;
  const segment = segments[index];
  if (segment === "") {
    const child = node.literals.get("");
    if (child !== undefined && visitMatches(child, segments, index + 1, values, visit)) return true;
  } else if (segment !== undefined) {
    const child = node.literals.get(segment) ?? (segment.includes("%") ? findDecodedChild(node, segment) : undefined);
    if (child !== undefined && visitMatches(child, segments, index + 1, values, visit)) return true;
    const value = node.parameter === undefined ? undefined : decodeSegment(segment);
    if (node.parameter !== undefined && value !== undefined) {
      values.push(value);
      if (visitMatches(node.parameter, segments, index + 1, values, visit)) return true;
      values.pop();
    }
  }
  if (node.tailRoutes.size === 0) return false;
  const rest = decodeRest(segments.slice(index));
  return rest !== undefined && visit(node.tailRoutes, [...values, rest]);
}

function findDecodedChild<T>(node: Node<T>, segment: string): Node<T> | undefined {
  const decoded = decodeSegment(segment);
  return decoded === undefined ? undefined : node.literals.get(decoded);
}

/**
 * One segment's text. Undefined for what is no name and a backend may interpret as a path: `..`, an encoded slash,
 * a NUL, bytes that are not UTF-8.
 */
function decodeSegment(segment: string): string | undefined {
  const text = decodeText(segment);
  return text === undefined || text === "." || text === ".." || text.includes("/") || text.includes("\0")
    ? undefined
    : text;
}

/** The rest of a path, with its slashes; undefined when it has `..`. */
function decodeRest(segments: readonly string[]): string | undefined {
  const texts: string[] = [];
  for (const segment of segments) {
    const text = decodeText(segment);
    if (text === undefined || text.includes("\0") || text.split("/").some((part) => part === "..")) return undefined;
    texts.push(text);
  }
  return texts.join("/");
}

function decodeText(segment: string): string | undefined {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function toParams(names: readonly string[], values: readonly string[]): Readonly<Record<string, string>> {
  const params = createTextRecord();
  for (let index = 0; index < names.length; index++) params[names[index]!] = values[index]!;
  return params;
}
