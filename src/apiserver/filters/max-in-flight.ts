import { MASTERS } from "../../auth/user.ts";
import { textResponse } from "../../http/respond.ts";
import { type RequestContext, type RequestFilter, userOf } from "../request/request-context.ts";
import { isLongRunning } from "../request/request-info.ts";
import type { OnTermination } from "./request-deadline.ts";

export interface InFlightLimits {
  /** Concurrent get, list and watch requests; 0: no limit. */
  readonly readOnly: number;
  /** Concurrent other requests; 0: no limit. */
  readonly mutating: number;
  /** Use one limit, the sum of the two; health probes are then exempt as well. */
  readonly shared: boolean;
}

const READ_ONLY_VERBS: ReadonlySet<string> = new Set(["get", "list", "watch"]);
const HEALTH_PATH = /^\/(?:healthz|livez|readyz)(?:\/|$)/;

/**
 * Responds 429 to requests over the limits. Long-running requests are not counted. Requests of `system:masters` are
 * never rejected, so that administrators can repair an overloaded server.
 */
export function withMaxInFlightLimit(
  { readOnly, mutating, shared }: InFlightLimits,
  onRejection: OnTermination = () => {},
): RequestFilter {
  const sharedCounter = new InFlightCounter(readOnly + mutating);
  const readOnlyCounter = shared ? sharedCounter : new InFlightCounter(readOnly);
  const mutatingCounter = shared ? sharedCounter : new InFlightCounter(mutating);
  return (next) => async (context) => {
    const { info } = context;
    const counter = READ_ONLY_VERBS.has(info.verb) ? readOnlyCounter : mutatingCounter;
    if (counter.limit === 0 || isLongRunning(info)) return await next(context);
    const exempt = isMaster(context) || (shared && !info.isResourceRequest && HEALTH_PATH.test(info.path));
    if (counter.inFlight >= counter.limit) {
      if (exempt) return await next(context);
      onRejection(context, 429);
      return tooManyRequests();
    }
    // With a shared limit, exempt requests are not counted.
    if (shared && exempt) return await next(context);
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
function tooManyRequests() {
  return textResponse(429, "Too many requests, please try again later.\n", {
    "retry-after": "1",
    "x-content-type-options": "nosniff",
  });
}
