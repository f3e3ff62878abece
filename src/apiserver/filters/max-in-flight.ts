import { MASTERS } from "../../auth/user.ts";
import { textResponse } from "../../http/respond.ts";
import { type RequestContext, type RequestFilter, userOf } from "../request/request-context.ts";
import { isLongRunning } from "../request/request-info.ts";
import type { OnTermination } from "./request-deadline.ts";

export interface InFlightLimits {
  /** Of requests that only read, at a time; 0: no limit. */
  readonly readOnly: number;
  /** Of all others; 0: no limit. */
  readonly mutating: number;
  /** One limit for both kinds, the sum of the two; health probes are then let through as well. */
  readonly shared: boolean;
}

const READ_ONLY_VERBS: ReadonlySet<string> = new Set(["get", "list", "watch"]);
const HEALTH_PATH = /^\/(?:healthz|livez|readyz)(?:\/|$)/;

/**
 * Answers 429 at once to what exceeds the limits. Requests that may last are not counted, and those of `system:masters`
 * are never refused: who has to repair a crowded server must get in.
 */
export function withMaxInFlightLimit({ readOnly: reading, mutating, shared }: InFlightLimits, onRefusal: OnTermination = () => {}): RequestFilter {
  const sharedCounter = new InFlightCounter(reading + mutating);
  const readOnlyCounter = shared ? sharedCounter : new InFlightCounter(reading);
  const mutatingCounter = shared ? sharedCounter : new InFlightCounter(mutating);
  return (next) => async (context) => {
    const { info } = context;
    const counter = READ_ONLY_VERBS.has(info.verb) ? readOnlyCounter : mutatingCounter;
    if (counter.limit === 0 || isLongRunning(info)) return await next(context);
    const exempt = isMember(context) || (shared && !info.isResourceRequest && HEALTH_PATH.test(info.path));
    if (counter.inFlight >= counter.limit) {
      if (exempt) return await next(context);
      onRefusal(context, 429);
      return tooManyRequests();
    }
    // With a shared limit those who are exempt have places of their own.
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

function isMember(context: RequestContext): boolean {
  return userOf(context).groups.includes(MASTERS);
}

/** Plain text, as in Kubernetes; clients look at the code and the header. */
function tooManyRequests() {
  return textResponse(429, "Too many requests, please try again later.\n", {
    "retry-after": "1",
    "x-content-type-options": "nosniff",
  });
}
