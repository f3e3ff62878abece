import type { HttpResponse } from "../../http/message.ts";
import { bodyLength, isStreamed } from "../../http/server/write-body.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { formatGoDuration } from "../../std/time/go-duration.ts";
import { DroppedRequests } from "../fairness/dropped-requests.ts";
import type { ActiveFlowSchema, FlowController } from "../fairness/flow-controller.ts";
import type { FlowRequest } from "../fairness/flow-request.ts";
import type { FlowTurn } from "../fairness/flow-turns.ts";
import type { WatchTracker } from "../fairness/watch-tracker.ts";
import { maxSeatsOf, type WorkEstimate } from "../fairness/work-estimate.ts";
import type { WorkEstimator } from "../fairness/work-estimator.ts";
import type { InFlightGauge } from "../metrics/in-flight-gauge.ts";
import {
  type RequestContext,
  type RequestFilter,
  type RequestHandler,
  userOf,
  type WatchLifecycle,
  withWatchLifecycle,
} from "../request/request-context.ts";
import { isLongRunning, type RequestInfo } from "../request/request-info.ts";
import { tooManyRequests } from "./max-in-flight.ts";
import { type OnTermination, requestTimeoutMs } from "./request-deadline.ts";
import { addLogField, REQUEST_LEVEL } from "./request-log.ts";

export interface PriorityAndFairness {
  readonly controller: FlowController;
  readonly estimator: WorkEstimator;
  readonly watches: WatchTracker;
}

export interface PriorityAndFairnessOptions extends PriorityAndFairness {
  readonly clock: Clock;
  /** `--request-timeout`: a request waits a quarter of its time. */
  readonly timeoutMs: number;
  readonly onRejection: OnTermination;
  /** Counts the requests that wait for seats. */
  readonly queued?: InFlightGauge | undefined;
  /** The log of requests, to whose lines the classification is added. */
  readonly log: Logger;
}

const SCHEMA_HEADER = "x-kubernetes-pf-flowschema-uid";
const LEVEL_HEADER = "x-kubernetes-pf-prioritylevel-uid";
const WAIT_MS_MAX = 60_000;
const LOGGED_LENGTH_MAX = 64;
const LARGE_RESPONSE_BYTES = 64 * 1024;
const READ_ONLY_VERBS: ReadonlySet<string> = new Set(["get", "list", "watch"]);

/**
 * Handles requests when their priority level has seats for them, and responds 429 to those for which it has none in
 * time. Long-running requests take no seats, except watches until they have sent their initial events.
 */
export function withPriorityAndFairness(options: PriorityAndFairnessOptions): RequestFilter {
  const { controller, estimator, clock } = options;
  const dropped = new DroppedRequests(clock);
  return (next) => (context) => {
    const { info } = context;
    if (!isWatch(info) && isLongRunning(info)) return next(context);
    controller.recordActivity();
    const user = userOf(context);
    const schema = controller.classify(info, user);
    setClassification(context, schema);
    const { level, metrics } = schema;
    const estimate = estimator.estimate(info, metrics, level.requestSeatsMax);
    metrics.estimatedSeats.observe(maxSeatsOf(estimate));
    if (options.log.v(REQUEST_LEVEL) !== undefined) logClassification(context, schema, estimate);
    const distinguisher = schema.distinguisherOf(info, user);
    const flow = schema.flowOf(distinguisher);
    const request = level.queueSet.start(
      { flow: metrics, flowSeats: flow.seats, distinguisher, context, estimate },
      flow.hand,
    );
    if (request?.isExecuting === true) return dispatch(schema, flow.turn, request, next);
    if (request !== undefined) return dispatchLater(schema, flow.turn, request, next);
    controller.removeIfUnused(level);
    if (!level.isExempt) metrics.observeWait(false, 0);
    return reject(schema, flow.turn, context);
  };

  /** Mostly without a promise of its own, which would delay every request. */
  function dispatch(
    schema: ActiveFlowSchema,
    turn: FlowTurn,
    request: FlowRequest,
    next: RequestHandler,
  ): Promise<HttpResponse> {
    const { level, metrics } = schema;
    const startMs = request.startMs ?? 0;
    if (!level.isExempt) metrics.observeWait(true, startMs - request.arrivalMs);
    if (startMs > request.arrivalMs) request.context.audit?.setLatency("queueWait", startMs - request.arrivalMs);
    metrics.dispatched.inc();
    const execution = new Execution(options, schema, request, options.log.v(REQUEST_LEVEL) !== undefined);
    if (level.isExempt) controller.turns.pass(turn, startMs);
    else {
      const mayProceed = controller.turns.take(turn, startMs, request.maxSeats);
      if (mayProceed !== undefined) return mayProceed.then(() => execute(options, execution, next));
    }
    return execute(options, execution, next);
  }

  async function dispatchLater(
    schema: ActiveFlowSchema,
    turn: FlowTurn,
    request: FlowRequest,
    next: RequestHandler,
  ): Promise<HttpResponse> {
    if (await waitForSeats(options, schema, turn, request)) return await dispatch(schema, turn, request, next);
    schema.metrics.observeWait(true, clock.monotonic() - request.arrivalMs);
    return await reject(schema, turn, request.context);
  }

  async function reject(schema: ActiveFlowSchema, turn: FlowTurn, context: RequestContext): Promise<HttpResponse> {
    options.onRejection(context, 429);
    const response = tooManyRequests(dropped.record(schema.level.name));
    await controller.turns.take(turn, clock.monotonic());
    return response;
  }
}

function isWatch(info: RequestInfo): boolean {
  return info.isResourceRequest && info.verb === "watch";
}

function execute(
  options: PriorityAndFairnessOptions,
  execution: Execution,
  next: RequestHandler,
): Promise<HttpResponse> {
  return isWatch(execution.context.info)
    ? executeWatch(options, execution, next)
    : executeRequest(options, execution, next);
}

function logClassification({ request }: RequestContext, schema: ActiveFlowSchema, work: WorkEstimate): void {
  const shorten = (text: string): string => text.slice(0, LOGGED_LENGTH_MAX);
  addLogField(request, "apf_pl", shorten(schema.level.name));
  addLogField(request, "apf_fs", shorten(schema.name));
  addLogField(request, "apf_iseats", work.initialSeats);
  addLogField(request, "apf_fseats", work.finalSeats);
  addLogField(request, "apf_additionalLatency", formatGoDuration(work.additionalLatencyMs));
}

/** The uids, not the names: these could disclose how an operator ranks the client. */
function setClassification({ responseHeaders }: RequestContext, { uid, level }: ActiveFlowSchema): void {
  if (responseHeaders === undefined) return;
  responseHeaders[SCHEMA_HEADER] = uid;
  responseHeaders[LEVEL_HEADER] = level.uid;
}

/** Resolves with false when the request has waited too long. */
async function waitForSeats(
  options: PriorityAndFairnessOptions,
  { level }: ActiveFlowSchema,
  turn: FlowTurn,
  request: FlowRequest,
): Promise<boolean> {
  const { controller, timeoutMs, clock, queued } = options;
  const { context } = request;
  const isWatch = context.info.verb === "watch";
  const waitMs = (isWatch ? timeoutMs : requestTimeoutMs(context, timeoutMs)) / 4;
  const { waiting } = kindMetrics(controller, context.info);
  waiting.add(1, request.arrivalMs);
  turn.queued++;
  queued?.enter(context.request.method, request.arrivalMs);
  const decision = await level.queueSet.wait(request, Math.min(waitMs, WAIT_MS_MAX), context.signal);
  turn.queued--;
  queued?.leave(context.request.method);
  waiting.add(-1, request.startMs ?? clock.monotonic());
  if (decision === "execute") return true;
  controller.removeIfUnused(level);
  return false;
}

function kindMetrics({ metrics }: FlowController, { verb }: RequestInfo) {
  return READ_ONLY_VERBS.has(verb) ? metrics.readOnly : metrics.mutating;
}

/** The seats of a request, from its dispatch on. */
class Execution {
  readonly context: RequestContext;
  readonly #controller: FlowController;
  readonly #schema: ActiveFlowSchema;
  readonly #request: FlowRequest;
  readonly #isLogged: boolean;
  #isOver = false;

  constructor({ controller }: PriorityAndFairness, schema: ActiveFlowSchema, request: FlowRequest, isLogged: boolean) {
    this.#isLogged = isLogged;
    this.context = request.context;
    this.#controller = controller;
    this.#schema = schema;
    this.#request = request;
    kindMetrics(controller, request.context.info).executing.add(1, request.startMs ?? 0);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const now = this.#controller.finish(this.#schema.level, this.#request);
    const { info } = this.context;
    kindMetrics(this.#controller, info).executing.add(-1, now);
    const ms = now - (this.#request.startMs ?? now);
    if (info.verb === "watch") this.#schema.metrics.observeWatchStart(ms);
    else this.#schema.metrics.observeExecution(ms);
    if (!this.#isLogged) return;
    const field = info.verb === "watch" ? "apf_init_latency" : "apf_execution_time";
    addLogField(this.context.request, field, formatGoDuration(ms));
  }
}

/** A large response keeps the seats until it is written: what waits for a slow reader takes memory. */
async function executeRequest(
  { clock, timeoutMs }: PriorityAndFairnessOptions,
  execution: Execution,
  next: RequestHandler,
): Promise<HttpResponse> {
  const { request } = execution.context;
  let isKept = false;
  try {
    const response = await next(execution.context);
    if (request.whenWritten !== undefined && isLarge(response)) {
      isKept = true;
      const timer = clock.timer(timeoutMs, () => execution.end());
      request.whenWritten(() => {
        timer.cancel();
        execution.end();
      });
    }
    return response;
  } finally {
    if (!isKept) execution.end();
  }
}

function isLarge({ body, finite }: HttpResponse): boolean {
  return isStreamed(body) ? finite === true : (bodyLength(body) ?? 0) > LARGE_RESPONSE_BYTES;
}

/** Releases the seats of a watch when it is initialized, and counts it until it ends. */
async function executeWatch(
  { watches }: PriorityAndFairness,
  execution: Execution,
  next: RequestHandler,
): Promise<HttpResponse> {
  const forget = watches.add(execution.context.info);
  let isClaimed = false;
  const lifecycle: WatchLifecycle = {
    claim: () => {
      isClaimed = true;
    },
    initialized: () => execution.end(),
    ended: () => {
      execution.end();
      forget();
    },
  };
  try {
    const response = await next(withWatchLifecycle(execution.context, lifecycle));
    if (!isClaimed) lifecycle.ended();
    return response;
  } catch (error) {
    lifecycle.ended();
    throw error;
  }
}
