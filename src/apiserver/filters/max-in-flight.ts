import { MASTERS } from "../../auth/user.ts";
import type { HttpResponse } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { type RequestContext, type RequestFilter, userOf } from "../request/request-context.ts";
import { isLongRunning } from "../request/request-info.ts";
import type { OnTermination } from "./request-deadline.ts";

export interface InFlightLimits {
  /** Concurrent get, list and watch requests; 0: no limit. */
  readonly readOnly: number;
  /** Concurrent other requests; 0: no limit. */
  readonly mutating: number;
  /** Priority and fairness: the sum of the two is shared out among priority levels. */
  readonly shared: boolean;
}

const READ_ONLY_VERBS: ReadonlySet<string> = new Set(["get", "list", "watch"]);

/**
 * Responds 429 to requests over the limits, while priority and fairness is off. Long-running requests are not counted.
 * Requests of `system:masters` are never rejected, so that administrators can repair an overloaded server.
 */
export function withMaxInFlightLimit(
  { readOnly, mutating }: Pick<InFlightLimits, "readOnly" | "mutating">,
  onRejection: OnTermination = () => {},
): RequestFilter {
  const readOnlyCounter = new InFlightCounter(readOnly);
  const mutatingCounter = new InFlightCounter(mutating);
  return (next) => async (context) => {
    const { info } = context;
    const counter = READ_ONLY_VERBS.has(info.verb) ? readOnlyCounter : mutatingCounter;
    if (counter.limit === 0 || isLongRunning(info)) return await next(context);
    if (counter.inFlight >= counter.limit) {
      if (isMaster(context)) return await next(context);
      onRejection(context, 429);
      return tooManyRequests(1);
    }
    counter.inFlight++;
    try {
      return await next(context);
    } finally {
      counter.inFlight--;
    }
  };
}

class InFlightCounter {
  readonly limit: number;
  inFlight = 0;

  constructor(limit: number) {
    this.limit = limit;
  }
}

function isMaster(context: RequestContext): boolean {
  return userOf(context).groups.includes(MASTERS);
}

/** Plain text, as in Kubernetes; clients use the code and the header. */
export function tooManyRequests(retryAfterSeconds: number): HttpResponse {
  return textResponse(429, "Too many requests, please try again later.\n", {
    "retry-after": String(retryAfterSeconds),
    "x-content-type-options": "nosniff",
  });
}
