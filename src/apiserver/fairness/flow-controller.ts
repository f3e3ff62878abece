/**
 * API priority and fairness: assigns each request to a priority level by the flow schemas, and divides the server's
 * seats among the levels.
 */
import type { FlowSchema } from "../../api/flowcontrol/flow-schema/schema.ts";
import { mandatoryFlowSchemas, mandatoryPriorityLevels } from "../../api/flowcontrol/mandatory-configuration.ts";
import type { PriorityLevelConfiguration } from "../../api/flowcontrol/priority-level-configuration/schema.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import type { RequestInfo } from "../request/request-info.ts";
import { allocateConcurrency } from "./concurrency-allocation.ts";
import { FlowControlMetrics, type FlowMetrics } from "./flow-control-metrics.ts";
import { type FlowRequest, FlowSeats } from "./flow-request.ts";
import { compileFlowSchema, type RequestMatcher } from "./flow-schema-matcher.ts";
import { FlowTurn, FlowTurns } from "./flow-turns.ts";
import { CATCH_ALL, EXEMPT, PriorityLevel } from "./priority-level.ts";
import { hashFlow } from "./shuffle-sharding.ts";

const ADJUSTMENT_PERIOD_MS = 10_000;
/** A smoothed demand below it, in seats, does not move a limit. */
const DEMAND_MIN = 0.01;
/** Flows that are remembered, for each flow schema; beyond that all are forgotten. */
const FLOWS_MAX = 1024;

export interface FlowControllerOptions {
  /** Seats of the whole server. */
  readonly concurrencyLimit: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
}

/** The requests of a flow schema with the same distinguisher. */
export interface Flow {
  /** Indexes of its queues. */
  readonly hand: readonly number[];
  readonly turn: FlowTurn;
  readonly seats: FlowSeats;
}

/** A flow schema in effect. */
export class ActiveFlowSchema {
  readonly name: string;
  readonly uid: string;
  readonly level: PriorityLevel;
  readonly matches: RequestMatcher;
  readonly #distinguisherMethod: string | undefined;
  readonly #newMetrics: () => FlowMetrics;
  readonly #flows = new Map<string, Flow>();
  #metrics: FlowMetrics | undefined;

  constructor(schema: FlowSchema, level: PriorityLevel, metrics: FlowControlMetrics) {
    const { metadata, spec } = schema;
    this.name = metadata?.name ?? "";
    this.uid = metadata?.uid ?? "";
    this.level = level;
    this.matches = compileFlowSchema(schema);
    this.#distinguisherMethod = level.queues > 1 ? spec?.distinguisherMethod?.type : undefined;
    this.#newMetrics = () => metrics.ofFlow(this.name, level.name);
  }

  /** Its series appear with its first request. */
  get metrics(): FlowMetrics {
    this.#metrics ??= this.#newMetrics();
    return this.#metrics;
  }

  /** What separates its flows: the user, the namespace, or nothing. */
  distinguisherOf(info: RequestInfo, user: UserInfo): string {
    if (this.#distinguisherMethod === undefined) return "";
    return this.#distinguisherMethod === "ByUser" ? user.name : info.namespace;
  }

  flowOf(distinguisher: string): Flow {
    let flow = this.#flows.get(distinguisher);
    if (flow === undefined) {
      flow = {
        hand: this.level.dealHand(() => hashFlow(this.name, distinguisher)),
        turn: new FlowTurn(),
        seats: new FlowSeats(),
      };
      if (this.#flows.size >= FLOWS_MAX) this.#flows.clear();
      this.#flows.set(distinguisher, flow);
    }
    return flow;
  }
}

export class FlowController implements Disposable {
  readonly metrics: FlowControlMetrics;
  readonly turns = new FlowTurns();
  readonly #options: FlowControllerOptions;
  #levels = new Map<string, PriorityLevel>();
  /** By matching precedence, then by name. */
  #schemas: readonly ActiveFlowSchema[] = [];
  #configuration: Configuration = { levels: [], schemas: [] };
  /** Runs only while requests arrive or limits still move. */
  #timer: Timer | undefined;
  #adjustedMs: number;
  #disposed = false;

  constructor(options: FlowControllerOptions) {
    this.#options = options;
    this.metrics = new FlowControlMetrics(options.metrics, options.clock);
    this.#adjustedMs = options.clock.monotonic();
    options.metrics.onCollect(() => this.#collect());
    this.configure([], []);
  }

  get levels(): ReadonlyMap<string, PriorityLevel> {
    return this.#levels;
  }

  /** The first flow schema that matches; without one `catch-all`. */
  classify(info: RequestInfo, user: UserInfo): ActiveFlowSchema {
    const schemas = this.#schemas;
    for (const schema of schemas) if (schema.matches(info, user)) return schema;
    return schemas.find(({ name }) => name === CATCH_ALL) ?? schemas.at(-1)!;
  }

  /** Schedules the next adjustment of the limits; called for each request. */
  recordActivity(): void {
    if (this.#timer !== undefined || this.#disposed) return;
    const { clock } = this.#options;
    // What the time without requests demanded counts as a period of its own.
    if (clock.monotonic() - this.#adjustedMs >= ADJUSTMENT_PERIOD_MS) this.#adjust();
    this.#timer = clock.timer(ADJUSTMENT_PERIOD_MS, () => this.#adjustPeriodically());
  }

  /** Releases the seats of the request. Returns the monotonic milliseconds. */
  finish(level: PriorityLevel, request: FlowRequest): number {
    const now = level.queueSet.finish(request);
    this.removeIfUnused(level);
    return now;
  }

  /** Removes a level whose object is deleted after its last request. */
  removeIfUnused(level: PriorityLevel): void {
    if (!level.quiescing || !level.queueSet.isIdle) return;
    this.configure(this.#configuration.levels, this.#configuration.schemas);
  }

  /**
   * Puts the objects into effect. A flow schema whose level does not exist is ignored. The mandatory objects apply even
   * when they do not exist; a level without an object remains as long as it has requests.
   */
  configure(levels: readonly PriorityLevelConfiguration[], schemas: readonly FlowSchema[]): void {
    this.#configuration = { levels, schemas };
    const next = new Map<string, PriorityLevel>();
    for (const config of levels) this.#putLevel(next, config);
    const active = this.#activate(next, schemas);
    for (const [name, level] of this.#levels) {
      if (next.has(name)) continue;
      const isMandatory = name === EXEMPT || name === CATCH_ALL;
      if (!isMandatory && level.queueSet.isIdle) level[Symbol.dispose]();
      else {
        level.quiescing = !isMandatory;
        next.set(name, level);
      }
    }
    for (const name of [EXEMPT, CATCH_ALL]) {
      if (!next.has(name)) this.#putLevel(next, { metadata: { name }, spec: mandatoryPriorityLevels[name]! });
    }
    this.#levels = next;
    this.#schemas = this.#addMandatorySchemas(active);
    this.#divideSeats();
    this.#adjust();
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#timer?.cancel();
    for (const level of this.#levels.values()) level[Symbol.dispose]();
  }

  #putLevel(next: Map<string, PriorityLevel>, config: PriorityLevelConfiguration): void {
    const name = config.metadata?.name ?? "";
    if ((config.spec?.type === "Exempt") !== (name === EXEMPT)) {
      const message = "Ignoring a PriorityLevelConfiguration: only the one named exempt may have the type Exempt";
      this.#options.log.warn(message, { name });
      return;
    }
    const level = this.#levels.get(name) ?? new PriorityLevel(config, this.metrics, this.#options.clock);
    level.config = config;
    level.quiescing = false;
    next.set(name, level);
  }

  #activate(levels: ReadonlyMap<string, PriorityLevel>, schemas: readonly FlowSchema[]): readonly ActiveFlowSchema[] {
    return schemas
      .toSorted((a, b) => precedenceOf(a) - precedenceOf(b) || (nameOf(a) < nameOf(b) ? -1 : 1))
      .flatMap((schema) => {
        const level = levels.get(schema.spec?.priorityLevelConfiguration.name ?? "");
        return level === undefined ? [] : [new ActiveFlowSchema(schema, level, this.metrics)];
      });
  }

  #addMandatorySchemas(schemas: readonly ActiveFlowSchema[]): readonly ActiveFlowSchema[] {
    const imagine = (name: string): readonly ActiveFlowSchema[] => {
      if (schemas.some((schema) => schema.name === name)) return [];
      const schema = { metadata: { name }, spec: mandatoryFlowSchemas[name]! };
      return [new ActiveFlowSchema(schema, this.#levels.get(name)!, this.metrics)];
    };
    return [...imagine(EXEMPT), ...schemas, ...imagine(CATCH_ALL)];
  }

  #divideSeats(): void {
    const { concurrencyLimit, clock } = this.#options;
    const levels = [...this.#levels.values()];
    const shareSum = levels.reduce((sum, level) => sum + level.shares.shares, 0);
    for (const level of levels) level.setLimits(shareSum, concurrencyLimit);
    const now = clock.monotonic();
    const nominalSum = levels.reduce((sum, { nominalLimit }) => sum + nominalLimit, 0);
    const waitingMax = levels.reduce((sum, { config }) => {
      const { queues = 0, queueLengthLimit = 0 } = config.spec?.limited?.limitResponse?.queuing ?? {};
      return sum + queues * queueLengthLimit;
    }, 0);
    for (const { waiting, executing } of [this.metrics.readOnly, this.metrics.mutating]) {
      waiting.setDenominator(Math.max(1, waitingMax), now);
      executing.setDenominator(Math.max(1, nominalSum), now);
    }
  }

  #adjustPeriodically(): void {
    this.#timer = undefined;
    const isQuiet = this.#adjust();
    if (!isQuiet && !this.#disposed) {
      this.#timer = this.#options.clock.timer(ADJUSTMENT_PERIOD_MS, () => this.#adjustPeriodically());
    }
  }

  /** Lends and borrows: sets the limits by the demand of the period. True when no seat was demanded lately. */
  #adjust(): boolean {
    const { clock, concurrencyLimit, log } = this.#options;
    const now = clock.monotonic();
    this.#adjustedMs = now;
    const levels = [...this.#levels.values()];
    const demands = levels.map((level) => level.observeDemand(now));
    const classes = levels.map(({ lowerLimit, nominalLimit, upperLimit, smoothedDemand }, index) => {
      // The seats that were needed, up to the configured ones, are not lent.
      const lowerBound = Math.max(lowerLimit, Math.min(nominalLimit, demands[index]!.highWatermark));
      return { lowerBound, upperBound: upperLimit, target: Math.max(lowerBound, smoothedDemand) };
    });
    const nominalSum = levels.reduce((sum, { nominalLimit }) => sum + nominalLimit, 0);
    const allocation = allocateConcurrency(nominalSum, classes);
    if (allocation === undefined) log.warn("Cannot divide the seats among the priority levels", { nominalSum });
    else this.metrics.setFairFraction(allocation.fairFraction);
    for (const [index, level] of levels.entries()) {
      const before = level.currentLimit ?? 0;
      const limit = Math.round(allocation?.seats[index] ?? before);
      const { smoothedDemand: smoothed } = level;
      level.metrics.setAdjustment({
        ...demands[index]!,
        smoothed,
        target: classes[index]!.target,
        currentLimit: limit,
      });
      level.setCurrentLimit(limit, concurrencyLimit, now);
      const isLarge = Math.abs(limit - before) >= 0.05 * Math.max(limit, before, 1);
      if (limit !== before) log.v(isLarge ? 2 : 4)?.info("Update CurrentCL", { plName: level.name, currentCL: limit });
    }
    return levels.every(
      ({ smoothedDemand }, index) => smoothedDemand < DEMAND_MIN && demands[index]!.highWatermark === 0,
    );
  }

  #collect(): void {
    const now = this.#options.clock.monotonic();
    for (const { metrics, queueSet } of this.#levels.values()) metrics.collect(queueSet, now);
    this.metrics.collect();
  }
}

interface Configuration {
  readonly levels: readonly PriorityLevelConfiguration[];
  readonly schemas: readonly FlowSchema[];
}

function precedenceOf({ spec }: FlowSchema): number {
  return spec?.matchingPrecedence ?? 0;
}

function nameOf({ metadata }: FlowSchema): string {
  return metadata?.name ?? "";
}
