/** Estimates the work of requests: lists by the number of objects, writes by the number of watches. */
import { isTrue, type RequestInfo } from "../request/request-info.ts";
import type { FlowMetrics } from "./flow-control-metrics.ts";
import type { WatchTracker } from "./watch-tracker.ts";
import type { WorkEstimate } from "./work-estimate.ts";

export interface WorkEstimatorOptions {
  readonly watches: WatchTracker;
  readonly countObjects: CountObjects;
  /** The feature gate WatchList. */
  readonly watchList: boolean;
}

/** The number of stored objects. Undefined: the resource is not stored here; negative: counting fails. */
type CountObjects = (info: RequestInfo) => number | undefined;

const SEATS_MAX = 10;
const OBJECTS_PER_SEAT = 100;
const WATCHES_PER_SEAT = 10;
/** How long a seat is busy with the events of a write. */
const EVENT_MS = 5;

const ONE_SEAT: WorkEstimate = { initialSeats: 1, finalSeats: 0, additionalLatencyMs: 0 };

export class WorkEstimator {
  readonly #options: WorkEstimatorOptions;

  constructor(options: WorkEstimatorOptions) {
    this.#options = options;
  }

  /** `levelMax`: the seats that a request of the level may take; 0 for a level without queues. */
  estimate(info: RequestInfo, flow: FlowMetrics, levelMax: number): WorkEstimate {
    const seatsMax = levelMax === 0 ? SEATS_MAX : Math.min(levelMax, SEATS_MAX);
    switch (info.verb) {
      case "list":
        return this.#estimateList(info, seatsMax);
      case "watch":
        return this.#options.watchList ? this.#estimateList(info, seatsMax) : ONE_SEAT;
      case "create":
      case "update":
      case "patch":
      case "delete":
        return this.#estimateWrite(info, flow, seatsMax);
      default:
        return ONE_SEAT;
    }
  }

  #estimateList(info: RequestInfo, seatsMax: number): WorkEstimate {
    const { query, verb, name } = info;
    const limit = parseInteger(query.get("limit"));
    if (limit === undefined || parseInteger(query.get("timeoutSeconds")) === undefined) return withSeats(seatsMax);
    if (verb === "watch" && !isTrue(query.get("sendInitialEvents"))) return ONE_SEAT;
    const stored = this.#options.countObjects(info);
    // Not stored here, such as a resource of an aggregated API server.
    if (stored === undefined) return ONE_SEAT;
    if (stored < 0) return withSeats(seatsMax);
    const processed = name === "" ? processedObjects(info, stored, limit) : 1;
    return withSeats(Math.min(seatsMax, Math.ceil(processed / OBJECTS_PER_SEAT)));
  }

  #estimateWrite(info: RequestInfo, flow: FlowMetrics, seatsMax: number): WorkEstimate {
    // The creation of a token changes no object.
    if (info.resource === "serviceaccounts" && info.subresource === "token") return ONE_SEAT;
    const count = this.#options.watches.countFor(info);
    flow.observeWatchCount(count);
    if (count < WATCHES_PER_SEAT) return ONE_SEAT;
    const seats = Math.ceil(count / WATCHES_PER_SEAT);
    const finalSeats = Math.min(seats, seatsMax);
    // Fewer seats for longer are the same work.
    return { initialSeats: 1, finalSeats, additionalLatencyMs: (seats * EVENT_MS) / finalSeats };
  }
}

function withSeats(seats: number): WorkEstimate {
  return seats <= 1 ? ONE_SEAT : { initialSeats: seats, finalSeats: 0, additionalLatencyMs: 0 };
}

/** Kubernetes' rule: a list from the watch cache looks at all objects, one from the store reads at least its page. */
function processedObjects({ query, verb }: RequestInfo, stored: number, limit: number): number {
  if (verb === "watch" || !isReadFromStore(query, limit)) return stored;
  const page = limit > 0 && limit < stored ? limit : stored;
  const isSelective = Boolean(query.get("labelSelector")) || Boolean(query.get("fieldSelector"));
  return isSelective ? stored + page : 2 * page;
}

function isReadFromStore(query: URLSearchParams, limit: number): boolean {
  const version = query.get("resourceVersion") ?? "";
  const match = query.get("resourceVersionMatch") ?? "";
  if (query.get("continue")) return true;
  if (match !== "") return match !== "NotOlderThan";
  return limit > 0 && version !== "" && version !== "0";
}

/** 0 when absent; undefined for what is no integer. */
function parseInteger(text: string | null): number | undefined {
  if (text === null || text === "") return 0;
  return /^[+-]?\d+$/.test(text) ? Number(text) : undefined;
}
