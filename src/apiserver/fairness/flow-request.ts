/** A request of a priority level, and the queue in which it waits. */
import { LinkedList } from "../../std/collections/linked-list.ts";
import type { RequestContext } from "../request/request-context.ts";
import type { FlowMetrics } from "./flow-control-metrics.ts";
import { ESTIMATED_SERVICE_MS, maxSeatsOf, totalWorkOf, type WorkEstimate } from "./work-estimate.ts";

/** How the wait of a queued request ended. */
export type Decision = "execute" | "timeout" | "cancel";

/** The seats of the executing requests of one flow in a priority level. */
export class FlowSeats {
  inUse = 0;
}

export class FlowRequest {
  readonly flow: FlowMetrics;
  readonly flowSeats: FlowSeats;
  readonly distinguisher: string;
  readonly context: RequestContext;
  /** Monotonic milliseconds. */
  readonly arrivalMs: number;
  /** Undefined while it waits. */
  startMs: number | undefined;
  /** The virtual time of the arrival, in seat-seconds. */
  arrivalR: number;
  readonly queue: RequestQueue | undefined;
  estimate: WorkEstimate;
  readonly maxSeats: number;
  /** In seat-seconds. */
  readonly totalWork: number;
  /** Whether it has to wait in its queue: it does not execute at once. */
  isQueued = false;
  /** Set while the request waits in its queue. */
  decide: ((decision: Decision) => void) | undefined;
  /** The neighbours among the waiting, and then among the executing requests. */
  previous: FlowRequest | undefined;
  next: FlowRequest | undefined;

  constructor(
    { flow, flowSeats, distinguisher, context, estimate }: FlowRequestOptions,
    queue: RequestQueue | undefined,
    arrivalMs: number,
    arrivalR: number,
  ) {
    this.flow = flow;
    this.flowSeats = flowSeats;
    this.distinguisher = distinguisher;
    this.context = context;
    this.arrivalMs = arrivalMs;
    this.arrivalR = arrivalR;
    this.queue = queue;
    this.estimate = estimate;
    this.maxSeats = maxSeatsOf(estimate);
    this.totalWork = totalWorkOf(estimate);
  }

  get isExecuting(): boolean {
    return this.startMs !== undefined;
  }
}

export interface FlowRequestOptions {
  readonly flow: FlowMetrics;
  readonly flowSeats: FlowSeats;
  readonly distinguisher: string;
  readonly context: RequestContext;
  readonly estimate: WorkEstimate;
}

/** First in, first out; a request that gives up leaves from anywhere. */
export class RequestQueue {
  /** The position in the queue set. */
  index: number;
  /** The virtual time at which the oldest request starts, in seat-seconds. */
  nextDispatchR = 0;
  /** The seats of executing requests, and of those that linger after their response. */
  seatsInUse = 0;
  readonly executing = new LinkedList<FlowRequest>();
  /** Sums over the executing requests: initial seats, and these times the monotonic milliseconds of their starts. */
  #executingSeats = 0;
  #executingStarts = 0;
  readonly waiting = new LinkedList<FlowRequest>();
  /** Sums over the waiting requests. */
  initialSeats = 0;
  maxSeats = 0;
  totalWork = 0;

  constructor(index: number) {
    this.index = index;
  }

  get oldest(): FlowRequest | undefined {
    return this.waiting.first;
  }

  get length(): number {
    return this.waiting.length;
  }

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.executing.length === 0;
  }

  /** The work of executing requests so far, beyond what the virtual time has of them; in seat-seconds. */
  workInProgress(nowMs: number): number {
    const seatMs = this.#executingSeats * (nowMs - ESTIMATED_SERVICE_MS) - this.#executingStarts;
    return seatMs > 0 ? seatMs / 1000 : 0;
  }

  addExecuting(request: FlowRequest, startMs: number): void {
    this.executing.push(request);
    this.#executingSeats += request.estimate.initialSeats;
    this.#executingStarts += request.estimate.initialSeats * startMs;
  }

  removeExecuting(request: FlowRequest): void {
    this.executing.delete(request);
    this.#executingSeats -= request.estimate.initialSeats;
    this.#executingStarts -= request.estimate.initialSeats * (request.startMs ?? 0);
    // Exact again without any, whatever the roundings were.
    if (this.executing.length === 0) this.#executingStarts = 0;
  }

  push(request: FlowRequest): void {
    this.waiting.push(request);
    this.initialSeats += request.estimate.initialSeats;
    this.maxSeats += request.maxSeats;
    this.totalWork += request.totalWork;
  }

  /** The request is in this queue. */
  remove(request: FlowRequest): void {
    this.waiting.delete(request);
    this.initialSeats -= request.estimate.initialSeats;
    this.maxSeats -= request.maxSeats;
    // Exact again when the queue is empty, whatever the roundings were.
    this.totalWork = this.length === 0 ? 0 : this.totalWork - request.totalWork;
  }
}
