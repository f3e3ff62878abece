/** The metrics `apiserver_flowcontrol_*`, with Kubernetes' names and texts. */
import type {
  Counter,
  CounterFamily,
  Gauge,
  GaugeFamily,
  Histogram,
  HistogramFamily,
  MetricRegistry,
  Stability,
} from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { TimingRatio } from "./timing-ratio.ts";

const PREFIX = "apiserver_flowcontrol_";
const LEVEL = ["priority_level"];
const FLOW = ["flow_schema", "priority_level"];
const DURATION_SECONDS = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];
const QUEUE_LENGTHS = [0, 10, 25, 50, 100, 250, 500, 1000];
const WATCH_COUNTS = [0, 1, 10, 100, 1000, 10_000];
const SEATS = [1, 2, 4, 10];
const SEAT_UTILIZATION = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];
const REQUEST_UTILIZATION = [0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1];
const READ_VS_WRITE = [0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];
const DEMAND = [0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6];

const perNanosecond = "Observations, at the end of every nanosecond, of";
const executingStage = "(initial stage for a WATCH, any stage otherwise)";
const subsystem = "API Priority and Fairness subsystem";

/** The seats of a priority level after an adjustment. */
export interface LevelAdjustment {
  readonly highWatermark: number;
  readonly average: number;
  readonly deviation: number;
  readonly smoothed: number;
  readonly target: number;
  readonly currentLimit: number;
}

/** Virtual times in seat-seconds: of the last dispatch, and bounds over the queues with a waiting request. */
export interface DispatchTimes {
  r: number;
  s: number;
  nextMin: number;
  nextMax: number;
  discountedMin: number;
  discountedMax: number;
}

/** The virtual time of a level. */
export interface Progress {
  readonly r: number;
  /** Undefined before the first dispatch from a queue. */
  readonly lastDispatch: DispatchTimes | undefined;
}

export interface LevelLimits {
  readonly nominal: number;
  readonly lower: number;
  readonly upper: number;
}

/** Series of one flow schema, for the requests that it assigns to its level. */
export class FlowMetrics {
  readonly schema: string;
  readonly level: string;
  readonly executingRequests: Gauge;
  readonly executingSeats: Gauge;
  readonly waitingRequests: Gauge;
  readonly waitingSeats: Gauge;
  readonly queueLength: Histogram;
  readonly dispatched: Counter;
  readonly estimatedSeats: Histogram;
  readonly #families: FlowFamilies;
  #waited: Histogram | undefined;
  #executed: Histogram | undefined;
  #executedWatches: Histogram | undefined;
  #watchCounts: Histogram | undefined;

  constructor(families: FlowFamilies, schema: string, level: string) {
    this.#families = families;
    this.schema = schema;
    this.level = level;
    const { executingRequests, executingSeats, waitingRequests, waitingSeats } = families;
    this.executingRequests = executingRequests.with(schema, level);
    this.executingSeats = executingSeats.with(schema, level);
    families.concurrencyInUse.with(schema, level);
    this.waitingRequests = waitingRequests.with(schema, level);
    this.waitingSeats = waitingSeats.with(schema, level);
    this.queueLength = families.queueLength.with(schema, level);
    this.dispatched = families.dispatched.with(schema, level);
    this.estimatedSeats = families.estimatedSeats.with(schema, level);
  }

  reject(reason: string): void {
    this.#families.rejected.with(this.schema, this.level, reason).inc();
  }

  countNoAccommodation(): void {
    this.#families.noAccommodation.with(this.schema, this.level).inc();
  }

  /** `isQueued`: the request was not rejected at once. */
  observeWait(isQueued: boolean, ms: number): void {
    if (isQueued) {
      this.#waited ??= this.#families.waits.with("true", this.schema, this.level);
      this.#waited.observe(ms / 1000);
    } else this.#families.waits.with("false", this.schema, this.level).observe(ms / 1000);
  }

  observeExecution(ms: number): void {
    this.#executed ??= this.#families.executions.with(this.schema, this.level, "regular");
    this.#executed.observe(ms / 1000);
  }

  /** The initialization of a watch. */
  observeWatchStart(ms: number): void {
    this.#executedWatches ??= this.#families.executions.with(this.schema, this.level, "watch");
    this.#executedWatches.observe(ms / 1000);
  }

  observeWatchCount(count: number): void {
    this.#watchCounts ??= this.#families.watchCounts.with(this.schema, this.level);
    this.#watchCounts.observe(count);
  }
}

/** Series of one priority level. */
export class LevelMetrics {
  readonly waiting: TimingRatio;
  readonly executing: TimingRatio;
  readonly seats: TimingRatio;
  readonly demand: TimingRatio;
  readonly #level: string;
  readonly #families: LevelFamilies;

  constructor(families: LevelFamilies, level: string, nowMs: number) {
    this.#families = families;
    this.#level = level;
    const { requestUtilization, seatUtilization, demand } = families;
    this.waiting = new TimingRatio(requestUtilization.with("waiting", level), nowMs);
    this.executing = new TimingRatio(requestUtilization.with("executing", level), nowMs);
    this.seats = new TimingRatio(seatUtilization.with("executing", level), nowMs);
    this.demand = new TimingRatio(demand.with(level), nowMs);
  }

  countEpoch(): void {
    this.#families.epochs.with(this.#level, "true").inc();
  }

  setLimits({ nominal, lower, upper }: LevelLimits): void {
    const { nominalLimit, concurrencyLimit, lowerLimit, upperLimit } = this.#families;
    nominalLimit.with(this.#level).set(nominal);
    concurrencyLimit.with(this.#level).set(nominal);
    lowerLimit.with(this.#level).set(lower);
    upperLimit.with(this.#level).set(upper);
  }

  setAdjustment({ highWatermark, average, deviation, smoothed, target, currentLimit }: LevelAdjustment): void {
    const families = this.#families;
    families.highWatermark.with(this.#level).set(highWatermark);
    families.average.with(this.#level).set(average);
    families.deviation.with(this.#level).set(deviation);
    families.smoothed.with(this.#level).set(smoothed);
    families.target.with(this.#level).set(target);
    families.currentLimit.with(this.#level).set(currentLimit);
  }

  /** Brings series up to date that are set only when metrics are shown. */
  collect({ r, lastDispatch }: Progress, nowMs: number): void {
    for (const ratio of [this.waiting, this.executing, this.seats, this.demand]) ratio.observe(nowMs);
    const families = this.#families;
    families.currentR.with(this.#level).set(r);
    if (lastDispatch === undefined) return;
    families.dispatchR.with(this.#level).set(lastDispatch.r);
    families.latestS.with(this.#level).set(lastDispatch.s);
    families.nextBounds.with("min", this.#level).set(lastDispatch.nextMin);
    families.nextBounds.with("max", this.#level).set(lastDispatch.nextMax);
    families.discountedBounds.with("min", this.#level).set(lastDispatch.discountedMin);
    families.discountedBounds.with("max", this.#level).set(lastDispatch.discountedMax);
  }
}

/** Requests that read or write, of all levels. */
class ReadWriteMetrics {
  readonly waiting: TimingRatio;
  readonly executing: TimingRatio;

  constructor(family: HistogramFamily, kind: "readOnly" | "mutating", nowMs: number) {
    this.waiting = new TimingRatio(family.with("waiting", kind), nowMs);
    this.executing = new TimingRatio(family.with("executing", kind), nowMs);
  }
}

export class FlowControlMetrics {
  readonly readOnly: ReadWriteMetrics;
  readonly mutating: ReadWriteMetrics;
  readonly #flows: FlowFamilies;
  readonly #levels: LevelFamilies;
  readonly #fairFraction: Gauge;
  readonly #clock: Clock;

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#clock = clock;
    const now = clock.monotonic();
    this.#flows = flowFamilies(registry);
    this.#levels = levelFamilies(registry);
    const help = `${perNanosecond} the number of requests (as a fraction of the relevant limit) waiting or in regular stage of execution`;
    const readVsWrite = ratios(
      registry,
      "read_vs_write_current_requests",
      help,
      ["phase", "request_kind"],
      READ_VS_WRITE,
    );
    this.readOnly = new ReadWriteMetrics(readVsWrite, "readOnly", now);
    this.mutating = new ReadWriteMetrics(readVsWrite, "mutating", now);
    const fraction = "Fair fraction of server's concurrency to allocate to each priority level that can use it";
    this.#fairFraction = gauge(registry, "seat_fair_frac", fraction, []).with();
  }

  ofFlow(schema: string, level: string): FlowMetrics {
    return new FlowMetrics(this.#flows, schema, level);
  }

  ofLevel(level: string): LevelMetrics {
    return new LevelMetrics(this.#levels, level, this.#clock.monotonic());
  }

  setFairFraction(value: number): void {
    this.#fairFraction.set(value);
  }

  collect(): void {
    const now = this.#clock.monotonic();
    for (const { waiting, executing } of [this.readOnly, this.mutating]) {
      waiting.observe(now);
      executing.observe(now);
    }
    // The deprecated name of a gauge.
    for (const { values, value } of this.#flows.executingSeats.series()) {
      this.#flows.concurrencyInUse.with(...values).set(value);
    }
  }
}

interface FlowFamilies {
  readonly executingRequests: GaugeFamily;
  readonly executingSeats: GaugeFamily;
  readonly concurrencyInUse: GaugeFamily;
  readonly waitingRequests: GaugeFamily;
  readonly waitingSeats: GaugeFamily;
  readonly queueLength: HistogramFamily;
  readonly dispatched: CounterFamily;
  readonly rejected: CounterFamily;
  readonly noAccommodation: CounterFamily;
  readonly waits: HistogramFamily;
  readonly executions: HistogramFamily;
  readonly watchCounts: HistogramFamily;
  readonly estimatedSeats: HistogramFamily;
}

function flowFamilies(registry: MetricRegistry): FlowFamilies {
  const histogram = (name: string, help: string, bounds: readonly number[], labels = FLOW, stability?: Stability) =>
    registry.histogram({ name: PREFIX + name, help, stability: stability ?? "ALPHA", labels }, bounds);
  const counter = (name: string, help: string, labels: readonly string[], stability: Stability) =>
    registry.counter({ name: PREFIX + name, help, stability, labels });
  const seatsInUse = `Concurrency (number of seats) occupied by the currently executing ${executingStage} requests in the ${subsystem}`;
  return {
    executingRequests: gauge(
      registry,
      "current_executing_requests",
      `Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the ${subsystem}`,
      FLOW,
      "BETA",
    ),
    executingSeats: gauge(registry, "current_executing_seats", seatsInUse, FLOW, "BETA"),
    concurrencyInUse: gauge(registry, "request_concurrency_in_use", seatsInUse, FLOW, "ALPHA", "1.31.0"),
    waitingRequests: gauge(
      registry,
      "current_inqueue_requests",
      `Number of requests currently pending in queues of the ${subsystem}`,
      FLOW,
      "BETA",
    ),
    waitingSeats: gauge(
      registry,
      "current_inqueue_seats",
      `Number of seats currently pending in queues of the ${subsystem}`,
      FLOW,
    ),
    queueLength: histogram(
      "request_queue_length_after_enqueue",
      `Length of queue in the ${subsystem}, as seen by each request after it is enqueued`,
      QUEUE_LENGTHS,
    ),
    dispatched: counter("dispatched_requests_total", `Number of requests executed by ${subsystem}`, FLOW, "BETA"),
    rejected: counter(
      "rejected_requests_total",
      `Number of requests rejected by ${subsystem}`,
      [...FLOW, "reason"],
      "BETA",
    ),
    noAccommodation: counter(
      "request_dispatch_no_accommodation_total",
      "Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats",
      FLOW,
      "ALPHA",
    ),
    waits: histogram(
      "request_wait_duration_seconds",
      "Length of time a request spent waiting in its queue",
      DURATION_SECONDS,
      ["execute", ...FLOW],
      "BETA",
    ),
    executions: histogram(
      "request_execution_seconds",
      `Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the ${subsystem}`,
      DURATION_SECONDS,
      [...FLOW, "type"],
    ),
    watchCounts: histogram(
      "watch_count_samples",
      "count of watchers for mutating requests in API Priority and Fairness",
      WATCH_COUNTS,
    ),
    estimatedSeats: histogram(
      "work_estimated_seats",
      "Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and " +
        "Fairness",
      SEATS,
    ),
  };
}

interface LevelFamilies {
  readonly requestUtilization: HistogramFamily;
  readonly seatUtilization: HistogramFamily;
  readonly demand: HistogramFamily;
  readonly epochs: CounterFamily;
  readonly nominalLimit: GaugeFamily;
  readonly concurrencyLimit: GaugeFamily;
  readonly lowerLimit: GaugeFamily;
  readonly upperLimit: GaugeFamily;
  readonly currentLimit: GaugeFamily;
  readonly highWatermark: GaugeFamily;
  readonly average: GaugeFamily;
  readonly deviation: GaugeFamily;
  readonly smoothed: GaugeFamily;
  readonly target: GaugeFamily;
  readonly currentR: GaugeFamily;
  readonly dispatchR: GaugeFamily;
  readonly latestS: GaugeFamily;
  readonly nextBounds: GaugeFamily;
  readonly discountedBounds: GaugeFamily;
}

function levelFamilies(registry: MetricRegistry): LevelFamilies {
  const ofLevel = (name: string, help: string, stability?: Stability, deprecatedSince?: string) =>
    gauge(registry, name, help, LEVEL, stability, deprecatedSince);
  const nominal = "Nominal number of execution seats configured for each priority level";
  const bound = (which: string) =>
    `Configured ${which} bound on number of execution seats available to each priority level`;
  const overQueues = "min and max, over queues, of S(oldest waiting request in queue)";
  const phases = ["phase", ...LEVEL];
  return {
    requestUtilization: ratios(
      registry,
      "priority_level_request_utilization",
      `${perNanosecond} number of requests (as a fraction of the relevant limit) waiting or in any stage of execution ` +
        "(but only initial stage for WATCHes)",
      phases,
      REQUEST_UTILIZATION,
    ),
    seatUtilization: ratios(
      registry,
      "priority_level_seat_utilization",
      `${perNanosecond} utilization of seats for any stage of execution (but only initial stage for WATCHes)`,
      phases,
      SEAT_UTILIZATION,
    ),
    demand: ratios(
      registry,
      "demand_seats",
      `${perNanosecond} (the number of seats each priority level could use) / (nominal number of seats for that level)`,
      LEVEL,
      DEMAND,
    ),
    epochs: registry.counter({
      name: `${PREFIX}epoch_advance_total`,
      help: "Number of times the queueset's progress meter jumped backward",
      stability: "ALPHA",
      labels: [...LEVEL, "success"],
    }),
    nominalLimit: ofLevel("nominal_limit_seats", nominal, "BETA"),
    concurrencyLimit: ofLevel("request_concurrency_limit", nominal, "ALPHA", "1.30.0"),
    lowerLimit: ofLevel("lower_limit_seats", bound("lower")),
    upperLimit: ofLevel("upper_limit_seats", bound("upper")),
    currentLimit: ofLevel(
      "current_limit_seats",
      "current derived number of execution seats available to each priority level",
    ),
    highWatermark: ofLevel(
      "demand_seats_high_watermark",
      "High watermark, over last adjustment period, of demand_seats",
    ),
    average: ofLevel("demand_seats_average", "Time-weighted average, over last adjustment period, of demand_seats"),
    deviation: ofLevel(
      "demand_seats_stdev",
      "Time-weighted standard deviation, over last adjustment period, of demand_seats",
    ),
    smoothed: ofLevel("demand_seats_smoothed", "Smoothed seat demands"),
    target: ofLevel("target_seats", "Seat allocation targets"),
    currentR: ofLevel("current_r", "R(time of last change)"),
    dispatchR: ofLevel("dispatch_r", "R(time of last dispatch)"),
    latestS: ofLevel("latest_s", "S(most recently dispatched request)"),
    nextBounds: gauge(registry, "next_s_bounds", overQueues, ["bound", ...LEVEL]),
    discountedBounds: gauge(registry, "next_discounted_s_bounds", `${overQueues} - estimated work in progress`, [
      "bound",
      ...LEVEL,
    ]),
  };
}

function gauge(
  registry: MetricRegistry,
  name: string,
  help: string,
  labels: readonly string[],
  stability: Stability = "ALPHA",
  deprecatedSince?: string,
): GaugeFamily {
  const options = { name: PREFIX + name, help, stability, labels };
  return registry.gauge(deprecatedSince === undefined ? options : { ...options, deprecatedSince });
}

function ratios(
  registry: MetricRegistry,
  name: string,
  help: string,
  labels: readonly string[],
  bounds: readonly number[],
): HistogramFamily {
  const options = { name: PREFIX + name, help, stability: "ALPHA" as const, labels, experimental: true };
  return registry.histogram(options, bounds);
}
