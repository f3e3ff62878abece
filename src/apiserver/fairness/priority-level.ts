/** One priority level: its queues, its limits, and the seats that its requests demand. */
import type { PriorityLevelConfiguration } from "../../api/flowcontrol/priority-level-configuration/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { DemandIntegrator } from "./demand-integrator.ts";
import type { FlowControlMetrics, LevelMetrics } from "./flow-control-metrics.ts";
import { QueueSet, type QueuingOptions } from "./queue-set.ts";
import { Dealer } from "./shuffle-sharding.ts";

export const EXEMPT = "exempt";
export const CATCH_ALL = "catch-all";

/** A request may take this part of the nominal seats. */
const SEATS_PART_MAX = 0.15;
/** The part of the smoothed demand that an adjustment keeps: its half-life is five minutes. */
const SMOOTHING = 0.977;

export interface LevelShares {
  readonly shares: number;
  readonly lendablePercent: number;
  /** Undefined: it may borrow all seats of the server. */
  readonly borrowingLimitPercent: number | undefined;
}

export class PriorityLevel implements Disposable {
  readonly name: string;
  readonly queueSet: QueueSet;
  readonly metrics: LevelMetrics;
  readonly demand: DemandIntegrator;
  config: PriorityLevelConfiguration;
  /** Its object is deleted, but it has requests. */
  quiescing = false;
  /** Seats from configuration, without borrowing. */
  nominalLimit = 0;
  lowerLimit = 0;
  upperLimit = 0;
  /** The limit after lending and borrowing; undefined before the first adjustment. */
  currentLimit: number | undefined;
  smoothedDemand = 0;
  /** The seats that one request may take; 0 for a level without queues. */
  requestSeatsMax = 0;
  #average = 0;
  #deviation = 0;
  #dealer: Dealer | undefined;

  constructor(config: PriorityLevelConfiguration, metrics: FlowControlMetrics, clock: Clock) {
    this.name = config.metadata?.name ?? "";
    this.config = config;
    this.metrics = metrics.ofLevel(this.name);
    this.demand = new DemandIntegrator(clock.monotonic());
    this.queueSet = new QueueSet({ clock, metrics: this.metrics, demand: this.demand });
  }

  get uid(): string {
    return this.config.metadata?.uid ?? "";
  }

  get isExempt(): boolean {
    return this.config.spec?.type === "Exempt";
  }

  /** 0: requests over the limit are rejected. */
  get queues(): number {
    return this.config.spec?.limited?.limitResponse?.queuing?.queues ?? 0;
  }

  get shares(): LevelShares {
    const { limited, exempt } = this.config.spec ?? {};
    return {
      shares: (limited ?? exempt)?.nominalConcurrencyShares ?? 0,
      lendablePercent: (limited ?? exempt)?.lendablePercent ?? 0,
      borrowingLimitPercent: limited?.borrowingLimitPercent,
    };
  }

  /** The queues of a flow; none for a level without queues. */
  dealHand(hash: () => bigint): readonly number[] {
    const queuing = this.config.spec?.limited?.limitResponse?.queuing;
    if (queuing === undefined) return [];
    const { queues = 1, handSize = 1 } = queuing;
    if (this.#dealer?.deckSize !== queues || this.#dealer.handSize !== handSize) {
      this.#dealer = new Dealer(queues, handSize);
    }
    return this.#dealer.deal(queues > 1 ? hash() : 0n);
  }

  /** Computes the limits. `shareSum`: the shares of all levels. */
  setLimits(shareSum: number, serverLimit: number): void {
    const { shares, lendablePercent, borrowingLimitPercent } = this.shares;
    const nominal = Math.ceil((serverLimit * shares) / shareSum);
    const lendable = Math.round((nominal * lendablePercent) / 100);
    const borrowable =
      borrowingLimitPercent === undefined ? serverLimit : Math.round((nominal * borrowingLimitPercent) / 100);
    this.nominalLimit = nominal;
    this.lowerLimit = nominal - lendable;
    this.upperLimit = nominal + borrowable;
    const handSize = this.config.spec?.limited?.limitResponse?.queuing?.handSize;
    const part = Math.ceil(nominal * SEATS_PART_MAX);
    this.requestSeatsMax = handSize === undefined ? 0 : Math.max(1, Math.min(part, Math.floor(nominal / handSize)));
    this.currentLimit ??= nominal - Math.floor(lendable / 2);
    this.metrics.setLimits({ nominal, lower: this.lowerLimit, upper: this.upperLimit });
  }

  /** Sets the limit to impose until the next adjustment. */
  setCurrentLimit(limit: number, serverLimit: number, nowMs: number): void {
    this.currentLimit = limit;
    const denominator = limit > 0 ? limit : Math.max(1, Math.round(serverLimit / 10));
    this.metrics.demand.setDenominator(denominator, nowMs);
    this.queueSet.configure(this.#queuing(), limit, denominator);
  }

  /** Includes the demand since the last call. */
  observeDemand(nowMs: number): LevelDemand {
    const { durationMs, average, deviation, max } = this.demand.reset(nowMs);
    if (durationMs <= 0) return { average: this.#average, deviation: this.#deviation, highWatermark: max };
    this.#average = average;
    this.#deviation = deviation;
    const envelope = average + deviation;
    this.smoothedDemand = Math.max(envelope, SMOOTHING * this.smoothedDemand + (1 - SMOOTHING) * envelope);
    return { average, deviation, highWatermark: max };
  }

  #queuing(): QueuingOptions {
    const { queues = 0, handSize = 1, queueLengthLimit = 0 } = this.config.spec?.limited?.limitResponse?.queuing ?? {};
    return { queues, handSize, queueLengthLimit, exempt: this.isExempt };
  }

  [Symbol.dispose](): void {
    this.queueSet[Symbol.dispose]();
  }
}

/** In seats, over one adjustment period. */
export interface LevelDemand {
  readonly average: number;
  readonly deviation: number;
  readonly highWatermark: number;
}
