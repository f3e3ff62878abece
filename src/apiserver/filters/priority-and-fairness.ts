import type { HttpResponse } from "../../http/message.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { formatGoDuration } from "../../std/time/go-duration.ts";
import { DroppedRequests } from "../fairness/dropped-requests.ts";
import type { Flow, FlowController } from "../fairness/flow-controller.ts";
import type { FlowRequest } from "../fairness/flow-request.ts";
import type { WatchTracker } from "../fairness/watch-tracker.ts";
import { maxSeatsOf, type WorkEstimate } from "../fairness/work-estimate.ts";
import type { WorkEstimator } from "../fairness/work-estimator.ts";
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
  /** The log of requests, to whose lines the classification is added. */
  readonly log: Logger;
}

const SCHEMA_HEADER = "x-kubernetes-pf-flowschema-uid";
const LEVEL_HEADER = "x-kubernetes-pf-prioritylevel-uid";
const WAIT_MS_MAX = 60_000;
const LOGGED_LENGTH_MAX = 64;
const READ_ONLY_VERBS: ReadonlySet<string> = new Set(["get", "list", "watch"]);

/**
 * Handles requests when their priority level has seats for them, and responds 429 to those for which it has none in
 * time. Long-running requests take no seats, except watches until they have sent their initial events.
 */
export function withPriorityAndFairness(options: PriorityAndFairnessOptions): RequestFilter {
  const { controller, estimator, clock } = options;
  const dropped = new DroppedRequests(clock);
  return (next) => async (context) => {
    const { info } = context;
    const isWatch = info.isResourceRequest && info.verb === "watch";
    if (!isWatch && isLongRunning(info)) return await next(context);
    controller.recordActivity();
    const user = userOf(context);
    const flow = controller.classify(info, user);
    setClassification(context, flow);
    const { level, metrics } = flow;
    const estimate = estimator.estimate(info, metrics, level.requestSeatsMax);
    metrics.estimatedSeats.observe(maxSeatsOf(estimate));
    const distinguisher = flow.distinguisherOf(info, user);
    const isLogged = options.log.v(REQUEST_LEVEL) !== undefined;
    if (isLogged) logClassification(context, flow, estimate);
    const request = level.queueSet.start(
      { flow: metrics, distinguisher, context, estimate },
      flow.handOf(distinguisher),
    );
    if (request === undefined) {
      controller.removeIfUnused(level);
      if (!level.isExempt) metrics.observeWait(false, 0);
    } else if (request.isExecuting || (await waitForSeats(options, flow, request))) {
      if (!level.isExempt) metrics.observeWait(true, (request.startMs ?? 0) - request.arrivalMs);
      metrics.dispatched.inc();
      const execution = new Execution(options, flow, request, isLogged);
      return isWatch ? await executeWatch(options, execution, next) : await execute(execution, next);
    } else metrics.observeWait(true, clock.monotonic() - request.arrivalMs);
    options.onRejection(context, 429);
    return tooManyRequests(dropped.record(level.name));
  };
}

function logClassification({ request }: RequestContext, flow: Flow, work: WorkEstimate): void {
  const shorten = (text: string): string => text.slice(0, LOGGED_LENGTH_MAX);
  addLogField(request, "apf_pl", shorten(flow.level.name));
  addLogField(request, "apf_fs", shorten(flow.name));
  addLogField(request, "apf_iseats", work.initialSeats);
  addLogField(request, "apf_fseats", work.finalSeats);
  addLogField(request, "apf_additionalLatency", formatGoDuration(work.additionalLatencyMs));
}

/** The uids, not the names: these could disclose how an operator ranks the client. */
function setClassification({ responseHeaders }: RequestContext, { uid, level }: Flow): void {
  if (responseHeaders === undefined) return;
  responseHeaders[SCHEMA_HEADER] = uid;
  responseHeaders[LEVEL_HEADER] = level.uid;
}

/** Resolves with false when the request has waited too long. */
async function waitForSeats(options: PriorityAndFairnessOptions, flow: Flow, request: FlowRequest): Promise<boolean> {
  const { controller, timeoutMs, clock } = options;
  const { context } = request;
  const isWatch = context.info.verb === "watch";
  const waitMs = (isWatch ? timeoutMs : requestTimeoutMs(context, timeoutMs)) / 4;
  const { waiting } = kindMetrics(controller, context.info);
  waiting.add(1, request.arrivalMs);
  const decision = await flow.level.queueSet.wait(request, Math.min(waitMs, WAIT_MS_MAX), context.signal);
  waiting.add(-1, request.startMs ?? clock.monotonic());
  if (decision === "execute") return true;
  controller.removeIfUnused(flow.level);
  return false;
}

function kindMetrics({ metrics }: FlowController, { verb }: RequestInfo) {
  return READ_ONLY_VERBS.has(verb) ? metrics.readOnly : metrics.mutating;
}

/** The seats of a request, from its dispatch on. */
class Execution {
  readonly context: RequestContext;
  readonly #controller: FlowController;
  readonly #flow: Flow;
  readonly #request: FlowRequest;
  readonly #isLogged: boolean;
  #isOver = false;

  constructor({ controller }: PriorityAndFairness, flow: Flow, request: FlowRequest, isLogged: boolean) {
    this.#isLogged = isLogged;
    this.context = request.context;
    this.#controller = controller;
    this.#flow = flow;
    this.#request = request;
    kindMetrics(controller, request.context.info).executing.add(1, request.startMs ?? 0);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const now = this.#controller.finish(this.#flow.level, this.#request);
    const { info } = this.context;
    kindMetrics(this.#controller, info).executing.add(-1, now);
    const ms = now - (this.#request.startMs ?? now);
    if (info.verb === "watch") this.#flow.metrics.observeWatchStart(ms);
    else this.#flow.metrics.observeExecution(ms);
    if (!this.#isLogged) return;
    const field = info.verb === "watch" ? "apf_init_latency" : "apf_execution_time";
    addLogField(this.context.request, field, formatGoDuration(ms));
  }
}

async function execute(execution: Execution, next: RequestHandler): Promise<HttpResponse> {
  try {
    return await next(execution.context);
  } finally {
    execution.end();
  }
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
