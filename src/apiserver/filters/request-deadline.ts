import { badRequest, StatusError } from "../../api/status.ts";
import type { HttpResponse } from "../../http/message.ts";
import { LinkedList } from "../../std/collections/linked-list.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { parseGoDuration } from "../request/go-duration.ts";
import { DerivedContext, type RequestContext, type RequestFilter } from "../request/request-context.ts";
import { isLongRunning } from "../request/request-info.ts";

/** Called when the server terminates a request to protect itself, with the response code. */
export type OnTermination = (context: RequestContext, code: number) => void;

/** Responds 504 after `timeoutMs`, or the shorter `timeout` of the query. Long-running requests have no deadline. */
export function withRequestDeadline(clock: Clock, timeoutMs: number, onEnd: OnTermination = () => {}): RequestFilter {
  const defaultDeadlines = new DeadlineQueue(clock, timeoutMs);
  return (next) => (context) => {
    if (isLongRunning(context.info)) return next(context);
    const requestedMs = requestedTimeoutMs(context);
    return new Promise((resolve, reject) => {
      const limit = new DeadlineContext(context, (reason) => {
        onEnd(context, 504);
        reject(reason);
      });
      const deadlines =
        requestedMs === undefined || requestedMs >= timeoutMs
          ? defaultDeadlines
          : new DeadlineQueue(clock, requestedMs);
      deadlines.add(limit);
      let responding: Promise<HttpResponse>;
      try {
        responding = next(limit);
      } catch (error) {
        deadlines.remove(limit);
        throw error;
      }
      responding.then(
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

/** Requests with the same timeout: they expire in the order of their arrival, so that one timer is enough. */
class DeadlineQueue {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #waiting = new LinkedList<DeadlineContext>();
  #timer: Timer | undefined;

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  add(limit: DeadlineContext): void {
    limit.due = this.#clock.monotonic() + this.#timeoutMs;
    this.#waiting.push(limit);
    this.#timer ??= this.#clock.timer(this.#timeoutMs, () => this.#expire());
  }

  remove(limit: DeadlineContext): void {
    limit.end();
    this.#waiting.delete(limit);
    if (this.#waiting.length > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #expire(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (let limit = this.#waiting.first; limit !== undefined; limit = this.#waiting.first) {
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

/** The time that a request has which is not long-running: that of its query, but at most `maxMs`. */
export function requestTimeoutMs(context: RequestContext, maxMs: number): number {
  return Math.min(requestedTimeoutMs(context) ?? maxMs, maxMs);
}

/** Milliseconds; undefined when the query has no timeout. */
function requestedTimeoutMs({ info }: RequestContext): number | undefined {
  const text = info.query.get("timeout");
  if (text === null || text === "") return undefined;
  const parsed = parseGoDuration(text);
  if (typeof parsed === "string") throw badRequest(`invalid timeout specified in the request URL - ${parsed}`);
  return parsed <= 0 ? undefined : parsed;
}

/** Combines the client's disconnection and the deadline in one signal, which is created on first access. */
class DeadlineContext extends DerivedContext {
  /** By the clock's monotonic time. */
  due = 0;
  previous: DeadlineContext | undefined;
  next: DeadlineContext | undefined;
  readonly #outer: RequestContext;
  readonly #onDeadline: (reason: unknown) => void;
  #signal: AbortSignal | undefined;
  #controller: AbortController | undefined;
  #reason: unknown;
  #onOuterAbort: (() => void) | undefined;

  constructor(outer: RequestContext, onDeadline: (reason: unknown) => void) {
    super(outer, outer.user, outer.audit, outer.watch);
    this.#outer = outer;
    this.#onDeadline = onDeadline;
  }

  override get signal(): AbortSignal {
    this.#signal ??= this.#createSignal(this.#outer.signal);
    return this.#signal;
  }

  /** Removes the listener of the outer signal once the response is sent. */
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
      // Not `AbortSignal.any`: it costs several times as much and is released by the garbage collector only.
      this.#onOuterAbort = () => controller.abort(outer.reason);
      outer.addEventListener("abort", this.#onOuterAbort);
    }
    return controller.signal;
  }
}
