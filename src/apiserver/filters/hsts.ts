import type { Filter } from "../../http/message.ts";

/** Tells browsers to come over TLS only, as the directives (`max-age=31536000`, …) say. */
export function withHsts(directives: readonly string[]): Filter {
  if (directives.length === 0) return (next) => next;
  const value = directives.join("; ");
  return (next) => async (request) => {
    const response = await next(request);
    return { ...response, headers: { ...response.headers, "strict-transport-security": value } };
  };
}
