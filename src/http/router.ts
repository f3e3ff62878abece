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
  segment: Node<T> | undefined;
  readonly here: Map<string, Route<T>>;
  readonly rest: Map<string, Route<T>>;
}

/**
 * Method and path to value: a tree of path segments. A pattern is made of literal segments, `{name}` for one segment
 * and, at its end, `{name*}` for all that is left (possibly nothing):
 * `/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path*}`. A literal segment wins over `{name}`, which wins over
 * `{name*}`. An empty segment is met by a literal one alone.
 */
export class Router<T> {
  readonly #root: Node<T> = emptyNode();

  /** Throws when the pattern is malformed or taken. */
  add(method: string, pattern: string, value: T): void {
    if (!pattern.startsWith("/")) throw new Error(`Cannot add route ${pattern}: it does not start with a slash`);
    const names: string[] = [];
    let node = this.#root;
    let routes = node.here;
    const segments = pattern === "/" ? [] : pattern.slice(1).split("/");
    if (segments.at(-1) === "") throw new Error(`Cannot add route ${pattern}: it has an empty segment at its end`);
    for (const [index, segment] of segments.entries()) {
      const parameter = parameterOf(pattern, segment);
      if (parameter === undefined) {
        node = literal(node, segment);
      } else {
        if (names.includes(parameter.name)) throw new Error(`Cannot add route ${pattern}: ${segment} appears twice`);
        names.push(parameter.name);
        if (parameter.rest) {
          if (index !== segments.length - 1)
            throw new Error(`Cannot add route ${pattern}: ${segment} is not at its end`);
          routes = node.rest;
          break;
        }
        node.segment ??= emptyNode();
        node = node.segment;
      }
      routes = node.here;
    }
    if (routes.has(method)) throw new Error(`Cannot add route ${method} ${pattern}: it is taken`);
    routes.set(method, { value, names });
  }

  /** `path` as it came, still percent-encoded. One trailing slash is forgiven. */
  match(method: string, path: string): RouteMatch<T> | MethodMismatch | undefined {
    if (!path.startsWith("/")) return undefined;
    const segments = path === "/" ? [] : path.slice(1).split("/");
    let match: RouteMatch<T> | undefined;
    let allowed: Set<string> | undefined;
    find(this.#root, segments, 0, [], (routes, values) => {
      const route = routes.get(method);
      if (route !== undefined) {
        match = { value: route.value, params: paramsOf(route.names, values) };
        return true;
      }
      allowed ??= new Set();
      for (const other of routes.keys()) allowed.add(other);
      return false;
    });
    return match ?? (allowed === undefined ? undefined : { allowed: [...allowed].sort() });
  }
}

function emptyNode<T>(): Node<T> {
  return { literals: new Map(), segment: undefined, here: new Map(), rest: new Map() };
}

function literal<T>(node: Node<T>, segment: string): Node<T> {
  let child = node.literals.get(segment);
  if (child === undefined) {
    child = emptyNode();
    node.literals.set(segment, child);
  }
  return child;
}

function parameterOf(pattern: string, segment: string): { readonly name: string; readonly rest: boolean } | undefined {
  if (!/[{}]/.test(segment)) return undefined;
  const match = /^\{(\w+)(\*?)\}$/.exec(segment);
  if (match === null) throw new Error(`Cannot add route ${pattern}: ${segment} is neither literal nor a parameter`);
  return { name: match[1]!, rest: match[2] === "*" };
}

/**
 * Visits all places the path leads to, best first, until one will do; says whether one did. As deep as the deepest
 * pattern, whatever the path. `values` are as they were when it returns.
 */
function find<T>(
  node: Node<T>,
  segments: readonly string[],
  at: number,
  values: string[],
  visit: (routes: Node<T>["here"], values: readonly string[]) => boolean,
): boolean {
  const atEnd = at === segments.length || (at === segments.length - 1 && segments[at] === "");
  if (atEnd && node.here.size > 0 && visit(node.here, values)) return true;
  const segment = segments[at];
  if (segment === "") {
    const child = node.literals.get("");
    if (child !== undefined && find(child, segments, at + 1, values, visit)) return true;
  } else if (segment !== undefined) {
    const child = node.literals.get(segment) ?? (segment.includes("%") ? decodedChild(node, segment) : undefined);
    if (child !== undefined && find(child, segments, at + 1, values, visit)) return true;
    const value = node.segment === undefined ? undefined : decodeSegment(segment);
    if (node.segment !== undefined && value !== undefined) {
      values.push(value);
      if (find(node.segment, segments, at + 1, values, visit)) return true;
      values.pop();
    }
  }
  if (node.rest.size === 0) return false;
  const rest = decodeRest(segments.slice(at));
  return rest !== undefined && visit(node.rest, [...values, rest]);
}

function decodedChild<T>(node: Node<T>, segment: string): Node<T> | undefined {
  const decoded = decodeSegment(segment);
  return decoded === undefined ? undefined : node.literals.get(decoded);
}

/**
 * One segment's text. Undefined for what can be no name and might be read as a path behind us: `..`, an encoded slash,
 * a NUL, bytes that are not UTF-8.
 */
function decodeSegment(segment: string): string | undefined {
  const text = decode(segment);
  return text === undefined || text === "." || text === ".." || text.includes("/") || text.includes("\0")
    ? undefined
    : text;
}

/** The tail of a path, slashes kept; undefined when it climbs. */
function decodeRest(segments: readonly string[]): string | undefined {
  const texts: string[] = [];
  for (const segment of segments) {
    const text = decode(segment);
    if (text === undefined || text.includes("\0") || text.split("/").some((part) => part === "..")) return undefined;
    texts.push(text);
  }
  return texts.join("/");
}

function decode(segment: string): string | undefined {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function paramsOf(names: readonly string[], values: readonly string[]): Readonly<Record<string, string>> {
  const params: Record<string, string> = Object.create(null);
  for (const [index, name] of names.entries()) params[name] = values[index]!;
  return params;
}
