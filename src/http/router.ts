export interface RouteMatch<T> {
  readonly value: T;
  /** Percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
}

/** The path exists, but not with this method. */
export interface MethodMismatch {
  readonly allowed: readonly string[];
}

/**
 * Method and path to value. A pattern is made of literal segments, `{name}` for one segment and, at its end,
 * `{name*}` for all that is left (possibly nothing): `/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path*}`.
 * A literal segment wins over `{name}`, which wins over `{name*}`.
 */
export declare class Router<T> {
  /** Throws when the pattern is malformed or taken. */
  add(method: string, pattern: string, value: T): void;
  /** `path` as it came, still percent-encoded. One trailing slash is forgiven. */
  match(method: string, path: string): RouteMatch<T> | MethodMismatch | undefined;
}
