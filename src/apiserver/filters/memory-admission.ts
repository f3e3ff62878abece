import { StatusError } from "../../api/status.ts";
import type { HeapGuard } from "../../std/memory/heap-guard.ts";
import type { RequestFilter } from "../request/request-context.ts";
import { COUNTED_BYTES_MIN, type RequestMemory } from "../request/request-memory.ts";
import type { OnTermination } from "./request-deadline.ts";

/** Requests that free memory, and small ones, are served while the heap is exhausted. */
const ALWAYS_SERVED: ReadonlySet<string> = new Set(["get", "delete", "deletecollection"]);

/**
 * Lets requests with large bodies take turns, and responds 429 to requests for resources while live objects fill most
 * of the heap: a server at its limit would only collect garbage.
 */
export function withMemoryAdmission(
  memory: RequestMemory,
  heap: HeapGuard,
  onRejection: OnTermination = () => {},
): RequestFilter {
  return (next) => (context) => {
    const { info, request } = context;
    if (heap.isExhausted() && info.isResourceRequest && !ALWAYS_SERVED.has(info.verb)) {
      onRejection(context, 429);
      return Promise.reject(
        new StatusError(429, "TooManyRequests", "the server has no memory left, please try again later", {
          details: { retryAfterSeconds: 5 },
        }),
      );
    }
    if (request.method === "GET" || Number(request.headers["content-length"]) < COUNTED_BYTES_MIN) return next(context);
    return memory.run(request, () => next(context));
  };
}
