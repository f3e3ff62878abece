import { badRequest, StatusError } from "../../api/status.ts";
import type { Clock } from "../../std/clock.ts";
import type { RequestContext, Stage } from "../context.ts";
import { parseGoDuration } from "../go-duration.ts";
import { isLongRunning } from "../request-info.ts";

/** Gives up a request after `timeoutMs`, or earlier where its query says so; those that may last are left alone. */
export function deadline(clock: Clock, timeoutMs: number): Stage {
  return (next) => async (context) => {
    if (isLongRunning(context.info)) return await next(context);
    const limitMs = Math.min(timeoutMs, askedFor(context) ?? timeoutMs);
    const limit = new Limit(context);
    const late = Promise.withResolvers<never>();
    const timer = clock.timer(limitMs, () => {
      const error = new StatusError(504, "Timeout", TIMED_OUT);
      limit.abort(error);
      late.reject(error);
    });
    try {
      return await Promise.race([next(limit.context), late.promise]);
    } finally {
      timer.cancel();
    }
  };
}

const TIMED_OUT = "Timeout: request did not complete within requested timeout - context deadline exceeded";

/** Milliseconds; undefined when the query does not say. */
function askedFor({ info }: RequestContext): number | undefined {
  const text = info.query.get("timeout");
  if (text === null || text === "") return undefined;
  const parsed = parseGoDuration(text);
  if (typeof parsed === "string") throw badRequest(`invalid timeout specified in the request URL - ${parsed}`);
  return parsed <= 0 ? undefined : parsed;
}

/** The client's going away and the deadline in one signal, made only when somebody asks for it. */
class Limit {
  readonly context: RequestContext;
  #signal: AbortSignal | undefined;
  #controller: AbortController | undefined;
  #reason: unknown;

  constructor(outer: RequestContext) {
    const signal = (): AbortSignal => {
      this.#signal ??= this.#made(outer.signal);
      return this.#signal;
    };
    this.context = {
      request: outer.request,
      info: outer.info,
      user: outer.user,
      warnings: outer.warnings,
      get signal() {
        return signal();
      },
    };
  }

  abort(reason: unknown): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
  }

  #made(outer: AbortSignal): AbortSignal {
    this.#controller = new AbortController();
    if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    return AbortSignal.any([outer, this.#controller.signal]);
  }
}
