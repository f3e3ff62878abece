import type { Filter } from "../../http/message.ts";

/** Adds the header `Strict-Transport-Security` with the directives (`max-age=31536000`, …). */
export function withHsts(directives: readonly string[]): Filter {
  if (directives.length === 0) return (next) => next;
  const value = directives.join("; ");
  return (next) => async (request) => {
    const response = await next(request);
    return { ...response, headers: { ...response.headers, "strict-transport-security": value } };
  };
}
