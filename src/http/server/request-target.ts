export interface Target {
  readonly path: string;
  readonly query: string;
}

// Visible ASCII only: anything else in a request line may be request smuggling. A `%` starts two hex digits.
const PATH = /^(?:[!"$&-~]|%[0-9a-fA-F]{2})*$/;
const QUERY = /^[!"$-~]*$/;

/** Splits a request's target. Undefined when it is malformed. `http://host/path` counts as `/path`. */
export function parseTarget(target: string | undefined): Target | undefined {
  if (target === undefined) return undefined;
  const origin = target.startsWith("/") ? target : withoutAuthority(target);
  if (origin === undefined) return undefined;
  const mark = origin.indexOf("?");
  const path = mark === -1 ? origin : origin.slice(0, mark);
  const query = mark === -1 ? "" : origin.slice(mark + 1);
  return PATH.test(path) && QUERY.test(query) ? { path, query } : undefined;
}

function withoutAuthority(target: string): string | undefined {
  const match = /^https?:\/\/[^/?#]+(.*)$/i.exec(target);
  if (match === null) return undefined;
  const rest = match[1]!;
  return rest.startsWith("/") ? rest : `/${rest}`;
}
