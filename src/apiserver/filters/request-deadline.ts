import { badRequest, StatusError } from "../../api/status.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { parseGoDuration } from "../request/go-duration.ts";
import type { RequestContext, RequestFilter } from "../request/request-context.ts";
import { isLongRunning } from "../request/request-info.ts";

/** Hears of requests that the server ends to look after itself, with the code that they are answered. */
export type OnTermination = (context: RequestContext, code: number) => void;

/** Gives up a request after `timeoutMs`, or earlier where its query says so; those that may last are left alone. */
export function withRequestDeadline(clock: Clock, timeoutMs: number, onEnd: OnTermination = () => {}): RequestFilter {
  const defaultDeadlines = new DeadlineQueue(clock, timeoutMs);
  return (next) => (context) => {
    if (isLongRunning(context.info)) return next(context);
    const asked = requestedTimeoutMs(context);
    return new Promise((resolve, reject) => {
      const limit = new DeadlineContext(context, (reason) => {
        onEnd(context, 504);
        reject(reason);
      });
      const deadlines = asked === undefined || asked >= timeoutMs ? defaultDeadlines : new DeadlineQueue(clock, asked);
      deadlines.add(limit);
      next(limit).then(
        (response) => {
          deadlines.remove(limit);
          resolve(response);
        },
        (error: unknown) => {
          deadlines.remove(limit);
          reject(error);
        },
      );
    });
  };
}

/** Requests that have equally long: they are due in the order in which they came, so that one timer is enough. */
class DeadlineQueue {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #waiting = new Set<DeadlineContext>();
  #timer: Timer | undefined;

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  add(limit: DeadlineContext): void {
    limit.due = this.#clock.monotonic() + this.#timeoutMs;
    this.#waiting.add(limit);
    this.#timer ??= this.#clock.timer(this.#timeoutMs, () => this.#expire());
  }

  remove(limit: DeadlineContext): void {
    limit.end();
    this.#waiting.delete(limit);
    if (this.#waiting.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #expire(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (const limit of this.#waiting) {
      // The host's timers may fire a fraction of a millisecond early.
      const remainingMs = limit.due - now;
      if (remainingMs >= 1) {
        this.#timer = this.#clock.timer(remainingMs, () => this.#expire());
        return;
      }
      this.#waiting.delete(limit);
      limit.abort(new StatusError(504, "Timeout", TIMEOUT_MESSAGE));
    }
  }
}

const TIMEOUT_MESSAGE = "Timeout: request did not complete within requested timeout - context deadline exceeded";

/** Milliseconds; undefined when the query does not say. */
function requestedTimeoutMs({ info }: RequestContext): number | undefined {
  const text = info.query.get("timeout");
  if (text === null || text === "") return undefined;
  const parsed = parseGoDuration(text);
  if (typeof parsed === "string") throw badRequest(`invalid timeout specified in the request URL - ${parsed}`);
  return parsed <= 0 ? undefined : parsed;
}

/** The client's going away and the deadline in one signal, made only when somebody asks for it. */
class DeadlineContext implements RequestContext {
  readonly request: RequestContext["request"];
  readonly info: RequestContext["info"];
  readonly user: RequestContext["user"];
  readonly warnings: RequestContext["warnings"];
  readonly annotations: RequestContext["annotations"];
  /** By the clock's monotonic time. */
  due = 0;
  readonly #outer: RequestContext;
  readonly #onDeadline: (reason: unknown) => void;
  #signal: AbortSignal | undefined;
  #controller: AbortController | undefined;
  #reason: unknown;
  #onOuterAbort: (() => void) | undefined;

  /** `late` hears of the deadline's passing. */
  constructor(outer: RequestContext, late: (reason: unknown) => void) {
    this.request = outer.request;
    this.info = outer.info;
    this.user = outer.user;
    this.warnings = outer.warnings;
    this.annotations = outer.annotations;
    this.#outer = outer;
    this.#onDeadline = late;
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#createSignal(this.#outer.signal);
    return this.#signal;
  }

  /** The request has been answered: nobody waits for the signal any more. */
  end(): void {
    if (this.#onOuterAbort !== undefined) this.#outer.signal.removeEventListener("abort", this.#onOuterAbort);
  }

  abort(reason: unknown): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.#onDeadline(reason);
  }

  #createSignal(outer: AbortSignal): AbortSignal {
    const controller = new AbortController();
    this.#controller = controller;
    if (this.#reason !== undefined) controller.abort(this.#reason);
    else if (outer.aborted) controller.abort(outer.reason);
    else {
      // Not `AbortSignal.any`, which costs several times as much and is let go of by the garbage collector only.
      this.#onOuterAbort = () => controller.abort(outer.reason);
      outer.addEventListener("abort", this.#onOuterAbort);
    }
    return controller.signal;
  }
}
