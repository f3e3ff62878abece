import { MASTERS } from "../../auth/user.ts";
import { text } from "../../http/respond.ts";
import { type RequestContext, type Stage, userOf } from "../request/request-context.ts";
import { isLongRunning } from "../request/request-info.ts";
import type { OnTermination } from "./request-deadline.ts";

export interface InFlightLimits {
  /** Of requests that only read, at a time; 0: no limit. */
  readonly reading: number;
  /** Of all others; 0: no limit. */
  readonly mutating: number;
  /** One limit for both kinds, the sum of the two; health probes are then let through as well. */
  readonly shared: boolean;
}

const READING: ReadonlySet<string> = new Set(["get", "list", "watch"]);
const PROBE = /^\/(?:healthz|livez|readyz)(?:\/|$)/;

/**
 * Answers 429 at once to what exceeds the limits. Requests that may last are not counted, and those of `system:masters`
 * are never refused: who has to repair a crowded server must get in.
 */
export function maxInFlight({ reading, mutating, shared }: InFlightLimits, onRefusal: OnTermination = () => {}): Stage {
  const both = new Places(reading + mutating);
  const readers = shared ? both : new Places(reading);
  const writers = shared ? both : new Places(mutating);
  return (next) => async (context) => {
    const { info } = context;
    const places = READING.has(info.verb) ? readers : writers;
    if (places.limit === 0 || isLongRunning(info)) return await next(context);
    const exempt = isMaster(context) || (shared && !info.isResourceRequest && PROBE.test(info.path));
    if (places.taken >= places.limit) {
      if (exempt) return await next(context);
      onRefusal(context, 429);
      return tooMany();
    }
    // With a shared limit those who are exempt have places of their own.
    if (shared && exempt) return await next(context);
    places.taken++;
    try {
      return await next(context);
    } finally {
      places.taken--;
    }
  };
}

class Places {
  readonly limit: number;
  taken = 0;

  constructor(limit: number) {
    this.limit = limit;
  }
}

function isMaster(context: RequestContext): boolean {
  return userOf(context).groups.includes(MASTERS);
}

/** Plain text, as in Kubernetes; clients look at the code and the header. */
function tooMany() {
  return text(429, "Too many requests, please try again later.\n", {
    "retry-after": "1",
    "x-content-type-options": "nosniff",
  });
}
