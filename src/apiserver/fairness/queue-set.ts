/**
 * Fair queueing for requests: those of one priority level share its seats, and wait in queues when all are taken.
 *
 * The virtual time R advances with the seats that each busy queue gets. A queue starts its oldest request at the
 * virtual time at which its earlier ones would have ended, had each queue the same seats; the queue whose request would
 * end first is served next. A request counts as 3 ms of its seats until its duration is known, then its queue is
 * corrected. https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/1040-priority-and-fairness
 */

import { SHARED_MS } from "../../std/async/turns.ts";
import { LinkedList } from "../../std/collections/linked-list.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import type { DemandIntegrator } from "./demand-integrator.ts";
import type { DispatchTimes, LevelMetrics } from "./flow-control-metrics.ts";
import { type Decision, FlowRequest, type FlowRequestOptions, type FlowSeats, RequestQueue } from "./flow-request.ts";
import { ESTIMATED_SERVICE_MS } from "./work-estimate.ts";

export interface QueuingOptions {
  /** 0: requests over the limit are rejected. */
  readonly queues: number;
  readonly handSize: number;
  readonly queueLengthLimit: number;
  /** No limit applies. */
  readonly exempt: boolean;
}

/** Above it, R and what was derived of it are reduced, in seat-seconds: a double is exact to 10 ns there. */
const R_MAX = 2 ** 26;
const R_DECREMENT = 2 ** 25;

/** The part of the seats that one flow leaves to others. */
const SEATS_FOR_OTHERS = 1 / 4;

export interface QueueSetCounts {
  dispatched: number;
  rejected: number;
  timedOut: number;
  cancelled: number;
}

export interface QueueSetOptions {
  readonly clock: Clock;
  readonly metrics: LevelMetrics;
  readonly demand: DemandIntegrator;
}

export class QueueSet implements Disposable {
  readonly counts: QueueSetCounts = { dispatched: 0, rejected: 0, timedOut: 0, cancelled: 0 };
  /** Executing requests that passed no queue. */
  readonly executing = new LinkedList<FlowRequest>();
  /** Undefined before the first dispatch from a queue. */
  lastDispatch: DispatchTimes | undefined;
  readonly #clock: Clock;
  readonly #metrics: LevelMetrics;
  readonly #demand: DemandIntegrator;
  /** Releases the seats of requests that linger: at most one for each seat. */
  readonly #lingering = new Set<Timer>();
  #latestFlow: FlowSeats | undefined;
  #sharedUntilMs = Number.NEGATIVE_INFINITY;
  #options: QueuingOptions = { queues: 0, handSize: 1, queueLengthLimit: 1, exempt: false };
  #limit = 0;
  /** More than configured while queues that are not wanted any more have requests. */
  #queues: RequestQueue[] = [];
  #r = 0;
  #lastMs: number;
  #times = newDispatchTimes();
  #robinIndex = 0;
  #enqueued = 0;
  #requestsWaiting = 0;
  #requestsExecuting = 0;
  #seatsInUse = 0;
  #seatsWaiting = 0;
  /** Queues with a waiting or an executing request. */
  #busyQueues = 0;
  /** Seats of the queues' requests: in use. */
  #queueSeatsInUse = 0;

  constructor({ clock, metrics, demand }: QueueSetOptions) {
    this.#clock = clock;
    this.#metrics = metrics;
    this.#demand = demand;
    this.#lastMs = clock.monotonic();
  }

  get queues(): readonly RequestQueue[] {
    return this.#queues;
  }

  get requestsWaiting(): number {
    return this.#requestsWaiting;
  }

  get requestsExecuting(): number {
    return this.#requestsExecuting;
  }

  get isIdle(): boolean {
    return this.#requestsWaiting === 0 && this.#requestsExecuting === 0;
  }

  /** The virtual time at the last change, in seat-seconds. */
  get r(): number {
    return this.#r;
  }

  /** `denominator`: the seats of which the utilization is a fraction. */
  configure(options: QueuingOptions, limit: number, denominator: number): void {
    const now = this.#syncTime();
    for (let index = this.#queues.length; index < options.queues; index++) this.#queues.push(new RequestQueue(index));
    // Without queues the rest of the previous options applies to the requests that still wait.
    this.#options = options.queues > 0 ? options : { ...this.#options, queues: 0, exempt: options.exempt };
    this.#limit = limit;
    const { waiting, executing, seats } = this.#metrics;
    const lengthLimit = Math.max(1, this.#options.queueLengthLimit);
    waiting.setDenominator(lengthLimit * Math.max(1, options.queues), now);
    executing.setDenominator(denominator, now);
    seats.setDenominator(denominator, now);
    this.#dispatchAll(now);
  }

  /**
   * Starts the request, or enqueues it in one of the queues of its hand; undefined when it is rejected. A request that
   * does not execute yet is passed to `wait`, one that executes to `finish`.
   */
  start(options: FlowRequestOptions, hand: readonly number[]): FlowRequest | undefined {
    const now = this.#syncTime();
    if (this.#latestFlow !== options.flowSeats) {
      if (this.#latestFlow !== undefined) this.#sharedUntilMs = now + SHARED_MS;
      this.#latestFlow = options.flowSeats;
    }
    if (this.#options.queues < 1) return this.#startWithoutQueue(options, now);
    const queue = this.#chooseQueue(hand);
    // Kubernetes exceeds the length while seats are free that are too few for the request which is next.
    if (queue.length >= this.#options.queueLengthLimit) {
      this.#boundNextDispatch(queue);
      this.#reject(options, "queue-full");
      return undefined;
    }
    const request = new FlowRequest(options, queue, now, this.#r);
    this.#enqueue(request, queue, now);
    request.flow.queueLength.observe(queue.length);
    this.#boundNextDispatch(queue);
    this.#dispatchAll(now, queue);
    if (!request.isExecuting) {
      request.isQueued = true;
      this.#countWaiting(request, 1, now);
    }
    return request;
  }

  /** Resolves when the request may execute, or is to be rejected: after `waitMs`, or when the client disconnects. */
  wait(request: FlowRequest, waitMs: number, signal: AbortSignal): Promise<Decision> {
    return new Promise((resolve) => {
      const giveUp = (decision: "timeout" | "cancel"): void => this.#remove(request, decision);
      const cancel = (): void => giveUp("cancel");
      const timer = this.#clock.timer(waitMs, () => giveUp("timeout"));
      request.decide = (decision) => {
        request.decide = undefined;
        timer.cancel();
        signal.removeEventListener("abort", cancel);
        resolve(decision);
      };
      if (signal.aborted) cancel();
      else signal.addEventListener("abort", cancel, { once: true });
    });
  }

  /**
   * The request has been handled; its seats are released, or linger for the additional latency of its work. Returns the
   * monotonic milliseconds.
   */
  finish(request: FlowRequest): number {
    const now = this.#syncTime();
    this.#requestsExecuting--;
    request.flow.executingRequests.dec();
    this.#metrics.executing.add(-1, now);
    const { queue } = request;
    const { additionalLatencyMs } = request.estimate;
    if (queue === undefined) this.executing.delete(request);
    else {
      queue.removeExecuting(request);
      if (queue.isIdle) this.#busyQueues--;
      const serviceMs = now - (request.startMs ?? now);
      queue.nextDispatchR -= (request.estimate.initialSeats * (ESTIMATED_SERVICE_MS - serviceMs)) / 1000;
      this.#boundNextDispatch(queue);
    }
    if (additionalLatencyMs <= 0) this.#releaseSeats(request, now);
    else {
      const timer = this.#clock.timer(additionalLatencyMs, () => {
        this.#lingering.delete(timer);
        const later = this.#syncTime();
        this.#releaseSeats(request, later);
        this.#dispatchAll(later);
      });
      this.#lingering.add(timer);
    }
    this.#dispatchAll(now);
    return now;
  }

  [Symbol.dispose](): void {
    for (const timer of this.#lingering) timer.cancel();
    this.#lingering.clear();
  }

  #startWithoutQueue(options: FlowRequestOptions, now: number): FlowRequest | undefined {
    const request = new FlowRequest(options, undefined, now, this.#r);
    if (!this.#hasSeats(request.maxSeats)) {
      this.#reject(options, "concurrency-limit");
      return undefined;
    }
    this.executing.push(request);
    this.#execute(request, now);
    return request;
  }

  #reject({ flow }: FlowRequestOptions, reason: string): void {
    this.counts.rejected++;
    flow.reject(reason);
  }

  /** The queue of the hand with the least work; equal ones take turns. */
  #chooseQueue(hand: readonly number[]): RequestQueue {
    const first = this.#enqueued++ % hand.length;
    let best = this.#queues[hand[first]!]!;
    for (let index = 1; index < hand.length; index++) {
      const queue = this.#queues[hand[(first + index) % hand.length]!]!;
      if (queue.totalWork < best.totalWork) best = queue;
    }
    return best;
  }

  #enqueue(request: FlowRequest, queue: RequestQueue, now: number): void {
    if (queue.isIdle) {
      queue.nextDispatchR = this.#r;
      this.#busyQueues++;
    }
    queue.push(request);
    this.#requestsWaiting++;
    this.#seatsWaiting += request.maxSeats;
    this.#recordDemand(now);
  }

  /** `only`: the queue that has all waiting requests if there is one. */
  #dispatchAll(now: number, only?: RequestQueue): void {
    while (this.#requestsWaiting > 0 && this.#seatsInUse < this.#limit && this.#dispatch(now, only));
  }

  /** Starts the next request; false when its seats are not free. */
  #dispatch(now: number, only: RequestQueue | undefined): boolean {
    const times = this.#times;
    times.nextMin = times.discountedMin = Number.POSITIVE_INFINITY;
    times.nextMax = times.discountedMax = Number.NEGATIVE_INFINITY;
    const isOnly = this.#requestsWaiting === 1 && only?.length === 1;
    const queue = isOnly ? only : this.#findNextQueue(now);
    if (isOnly && only !== undefined) this.#include(only);
    const request = queue?.oldest;
    if (isOnly && request !== undefined && this.#exceedsShare(request, now)) return false;
    if (queue === undefined || request === undefined) return false;
    if (!this.#hasSeats(request.maxSeats)) {
      request.flow.countNoAccommodation();
      return false;
    }
    this.#robinIndex = queue.index;
    this.#recordDispatch(queue.nextDispatchR);
    queue.remove(request);
    this.#requestsWaiting--;
    this.#seatsWaiting -= request.maxSeats;
    this.#narrow(request);
    queue.nextDispatchR += request.totalWork;
    queue.addExecuting(request, now);
    queue.seatsInUse += request.maxSeats;
    this.#queueSeatsInUse += request.maxSeats;
    this.#execute(request, now);
    this.#boundNextDispatch(queue);
    if (request.isQueued) this.#countWaiting(request, -1, now);
    request.decide?.("execute");
    return true;
  }

  /**
   * The queue whose oldest request ends first in virtual time; of equal ones the next in turn. Kubernetes accounts for
   * the real duration of a request when it ends: a queue with many long ones would be first until then.
   */
  #findNextQueue(now: number): RequestQueue | undefined {
    const { length } = this.#queues;
    let best: RequestQueue | undefined;
    let bestEnd = Number.POSITIVE_INFINITY;
    for (let step = 1; step <= length; step++) {
      const queue = this.#queues[(this.#robinIndex + step) % length]!;
      const { oldest } = queue;
      if (oldest === undefined || this.#exceedsShare(oldest, now)) continue;
      this.#include(queue);
      const end = queue.nextDispatchR + queue.workInProgress(now) + oldest.totalWork;
      if (end >= bestEnd) continue;
      bestEnd = end;
      best = queue;
    }
    return best;
  }

  /**
   * While flows share the level, each leaves a part of the seats to the others, whose requests would otherwise wait for
   * one that the disk or a slow client keeps. Kubernetes lets one flow take all seats; with one request at a time a
   * flow is never limited, nor with fewer than four seats.
   */
  #exceedsShare({ flowSeats, maxSeats }: FlowRequest, now: number): boolean {
    if (flowSeats.inUse === 0 || now >= this.#sharedUntilMs || this.#options.exempt) return false;
    return flowSeats.inUse + maxSeats > this.#limit - Math.floor(this.#limit * SEATS_FOR_OTHERS);
  }

  /** Final seats above the limit become as many as it allows, for the same work. */
  #narrow(request: FlowRequest): void {
    const { finalSeats, additionalLatencyMs } = request.estimate;
    if (finalSeats <= this.#limit) return;
    const latency = (finalSeats * additionalLatencyMs) / this.#limit;
    request.estimate = { ...request.estimate, finalSeats: this.#limit, additionalLatencyMs: latency };
  }

  #execute(request: FlowRequest, now: number): void {
    request.startMs = now;
    this.#requestsExecuting++;
    this.#seatsInUse += request.maxSeats;
    request.flowSeats.inUse += request.maxSeats;
    request.flow.executingRequests.inc();
    request.flow.executingSeats.inc(request.maxSeats);
    this.#metrics.executing.add(1, now);
    this.#metrics.seats.add(request.maxSeats, now);
    this.counts.dispatched++;
    this.#recordDemand(now);
  }

  #releaseSeats(request: FlowRequest, now: number): void {
    const { queue, maxSeats } = request;
    this.#seatsInUse -= maxSeats;
    request.flowSeats.inUse -= maxSeats;
    request.flow.executingSeats.dec(maxSeats);
    this.#metrics.seats.add(-maxSeats, now);
    this.#recordDemand(now);
    if (queue === undefined) return;
    queue.seatsInUse -= maxSeats;
    this.#queueSeatsInUse -= maxSeats;
    if (this.#queues.length > this.#options.queues && queue.isIdle && this.#queues[queue.index] === queue) {
      this.#queues.splice(queue.index, 1);
      for (let index = queue.index; index < this.#queues.length; index++) this.#queues[index]!.index = index;
      if (this.#robinIndex >= queue.index) this.#robinIndex--;
    }
  }

  /** Removes a waiting request that is not executed. */
  #remove(request: FlowRequest, decision: "timeout" | "cancel"): void {
    const { decide, queue } = request;
    if (decide === undefined || queue === undefined) return;
    const now = this.#syncTime();
    queue.remove(request);
    if (queue.isIdle) this.#busyQueues--;
    this.#requestsWaiting--;
    this.#seatsWaiting -= request.maxSeats;
    this.counts.rejected++;
    if (decision === "timeout") this.counts.timedOut++;
    else this.counts.cancelled++;
    request.flow.reject(decision === "timeout" ? "time-out" : "cancelled");
    this.#countWaiting(request, -1, now);
    this.#recordDemand(now);
    this.#boundNextDispatch(queue);
    decide(decision);
  }

  #countWaiting({ flow, maxSeats }: FlowRequest, delta: 1 | -1, now: number): void {
    flow.waitingRequests.inc(delta);
    flow.waitingSeats.inc(delta * maxSeats);
    this.#metrics.waiting.add(delta, now);
  }

  #recordDemand(now: number): void {
    const seats = this.#seatsInUse + this.#seatsWaiting;
    this.#demand.set(seats, now);
    this.#metrics.demand.set(seats, now);
  }

  /** A request that needs more seats than there are executes alone. */
  #hasSeats(seats: number): boolean {
    if (this.#options.exempt) return true;
    if (seats > this.#limit) return this.#requestsExecuting === 0;
    return this.#seatsInUse + seats <= this.#limit;
  }

  /** A queue that did not use its seats gets no credit for them: a request does not start before it arrived. */
  #boundNextDispatch(queue: RequestQueue): void {
    const { oldest } = queue;
    if (oldest !== undefined && queue.nextDispatchR < oldest.arrivalR) queue.nextDispatchR = oldest.arrivalR;
  }

  /** Advances R to now; called before each change. Returns the monotonic milliseconds. */
  #syncTime(): number {
    const now = this.#clock.monotonic();
    const seconds = (now - this.#lastMs) / 1000;
    this.#lastMs = now;
    if (this.#busyQueues === 0) return now;
    const seats = Math.min(this.#queueSeatsInUse + this.#seatsWaiting, this.#limit);
    this.#r += (seconds * seats) / this.#busyQueues;
    if (this.#r >= R_MAX) this.#advanceEpoch();
    return now;
  }

  #advanceEpoch(): void {
    this.#r -= R_DECREMENT;
    for (const queue of this.#queues) {
      // The next request of an idle queue sets it.
      if (queue.isIdle) queue.nextDispatchR = 0;
      else queue.nextDispatchR -= R_DECREMENT;
      for (const request of queue.waiting) request.arrivalR -= R_DECREMENT;
    }
    this.#metrics.countEpoch();
  }

  #include({ nextDispatchR, seatsInUse }: RequestQueue): void {
    const times = this.#times;
    const discounted = nextDispatchR - (seatsInUse * ESTIMATED_SERVICE_MS) / 1000;
    if (nextDispatchR < times.nextMin) times.nextMin = nextDispatchR;
    if (nextDispatchR > times.nextMax) times.nextMax = nextDispatchR;
    if (discounted < times.discountedMin) times.discountedMin = discounted;
    if (discounted > times.discountedMax) times.discountedMax = discounted;
  }

  /** Publishes the times that `#dispatch` collected, without an allocation for each request. */
  #recordDispatch(s: number): void {
    const times = this.#times;
    times.r = this.#r;
    times.s = s;
    this.#times = this.lastDispatch ?? newDispatchTimes();
    this.lastDispatch = times;
  }
}

function newDispatchTimes(): DispatchTimes {
  return { r: 0, s: 0, nextMin: 0, nextMax: 0, discountedMin: 0, discountedMax: 0 };
}
