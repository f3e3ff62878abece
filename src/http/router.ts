import { createTextRecord } from "../std/collections/text-record.ts";
import { percentDecode } from "../std/percent-decode.ts";

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
 * `{name*}`. As in Kubernetes, `%2f` separates segments too, and a parameter may be empty within the path, `.` or `..`:
 * handlers check names.
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

  /** `path` is percent-encoded. Ignores trailing slashes. */
  match(method: string, path: string): RouteMatch<T> | MethodMismatch | undefined {
    if (!path.startsWith("/")) return undefined;
    const segments = path === "/" ? [] : path.slice(1).split(path.includes("%") ? SEPARATOR : "/");
    let end = segments.length;
    while (segments[end - 1] === "" && end > 1) end--;
    let match: RouteMatch<T> | undefined;
    let allowed: Set<string> | undefined;
    visitMatches(this.#root, { segments, end }, 0, [], (routes, values) => {
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

const SEPARATOR = /\/|%2f/i;

interface Path {
  readonly segments: readonly string[];
  /** Without trailing slashes. */
  readonly end: number;
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
  path: Path,
  index: number,
  values: string[],
  visit: (routes: Node<T>["routes"], values: readonly string[]) => boolean,
): boolean {
  const { segments, end } = path;
  const segment = index < end ? decodeSegment(segments[index]!) : undefined;
  if (segment === undefined) {
    if (node.routes.size > 0 && visit(node.routes, values)) return true;
  } else {
    const child = node.literals.get(segment);
    if (child !== undefined && visitMatches(child, path, index + 1, values, visit)) return true;
    if (node.parameter !== undefined) {
      values.push(segment);
      if (visitMatches(node.parameter, path, index + 1, values, visit)) return true;
      values.pop();
    }
  }
  if (node.tailRoutes.size === 0) return false;
  const rest = decodeRest(segments.slice(index));
  return rest !== undefined && visit(node.tailRoutes, [...values, rest]);
}

/** One segment's text. Bytes that are not UTF-8 become U+FFFD. */
function decodeSegment(segment: string): string {
  return segment.includes("%") ? percentDecode(segment) : segment;
}

/** The rest of a path, with its slashes; undefined when a backend may interpret it as another path. */
function decodeRest(segments: readonly string[]): string | undefined {
  const texts = segments.map(decodeSegment);
  return texts.some((text) => text === ".." || text.includes("\0") || text.includes("\uFFFD"))
    ? undefined
    : texts.join("/");
}

function toParams(names: readonly string[], values: readonly string[]): Readonly<Record<string, string>> {
  const params = createTextRecord();
  for (let index = 0; index < names.length; index++) params[names[index]!] = values[index]!;
  return params;
}
