/** The pages `/debug/api_priority_and_fairness/…`: tables with commas, for people and spreadsheets. */
import { formatApiVersion, kubernetesGroup } from "../../api/scheme.ts";
import type { HttpResponse } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import type { Clock } from "../../std/time/clock.ts";
import { formatGoDuration } from "../../std/time/go-duration.ts";
import type { FlowController } from "../fairness/flow-controller.ts";
import type { FlowRequest } from "../fairness/flow-request.ts";
import type { PriorityLevel } from "../fairness/priority-level.ts";

export interface DebugDump {
  readonly path: string;
  respond(query: URLSearchParams): HttpResponse;
}

type Row = readonly (string | number | boolean)[];

const FOLDER = "/debug/api_priority_and_fairness";
/** As Go prints a time that is not set. */
const NO_TIME = "0001-01-01T00:00:00Z";
const CELL_WIDTH_MIN = 8;

export function createDebugDumps(controller: FlowController, clock: Clock): readonly DebugDump[] {
  const levels = (): readonly PriorityLevel[] =>
    [...controller.levels.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const page = (name: string, rows: (query: URLSearchParams) => readonly Row[]): DebugDump => ({
    path: `${FOLDER}/${name}`,
    respond: (query) => textResponse(200, formatTable(rows(query))),
  });
  return [
    page("dump_priority_levels", () => [LEVEL_HEADERS, ...levels().map(levelRow)]),
    page("dump_queues", () => [QUEUE_HEADERS, ...levels().flatMap(queueRows)]),
    page("dump_requests", (query) => {
      const details = Boolean(query.get("includeRequestDetails"));
      const headers = details ? [...REQUEST_HEADERS, ...DETAIL_HEADERS] : REQUEST_HEADERS;
      const toTime = createTimeFormatter(clock);
      return [headers, ...levels().flatMap((level) => requestRows(level, details, toTime))];
    }),
  ];
}

const LEVEL_HEADERS = [
  "PriorityLevelName",
  "ActiveQueues",
  "IsIdle",
  "IsQuiescing",
  "WaitingRequests",
  "ExecutingRequests",
  "DispatchedRequests",
  "RejectedRequests",
  "TimedoutRequests",
  "CancelledRequests",
];

function levelRow({ name, queueSet, quiescing }: PriorityLevel): Row {
  const { queues, isIdle, requestsWaiting, requestsExecuting, counts } = queueSet;
  const active = queues.filter(({ length }) => length > 0).length;
  const { dispatched, rejected, timedOut, cancelled } = counts;
  return [
    name,
    active,
    isIdle,
    quiescing,
    requestsWaiting,
    requestsExecuting,
    dispatched,
    rejected,
    timedOut,
    cancelled,
  ];
}

const QUEUE_HEADERS = [
  "PriorityLevelName",
  "Index",
  "PendingRequests",
  "ExecutingRequests",
  "SeatsInUse",
  "NextDispatchR",
  "InitialSeatsSum",
  "MaxSeatsSum",
  "TotalWorkSum",
];

function queueRows({ name, queueSet }: PriorityLevel): readonly Row[] {
  return queueSet.queues.map((queue, index) => [
    name,
    index,
    queue.length,
    queue.executing.length,
    queue.seatsInUse,
    formatSeatSeconds(queue.nextDispatchR),
    queue.initialSeats,
    queue.maxSeats,
    formatSeatSeconds(queue.totalWork),
  ]);
}

const REQUEST_HEADERS = [
  "PriorityLevelName",
  "FlowSchemaName",
  "QueueIndex",
  "RequestIndexInQueue",
  // Kubernetes' spelling.
  "FlowDistingsher",
  "ArriveTime",
  "InitialSeats",
  "FinalSeats",
  "AdditionalLatency",
  "StartTime",
];
const DETAIL_HEADERS = ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];

type TimeFormatter = (monotonicMs: number | undefined) => string;

/** -1 is the index of a request that executes, and of the queue of one that passed none. */
function requestRows({ name, queueSet }: PriorityLevel, details: boolean, toTime: TimeFormatter): readonly Row[] {
  const row = (queue: number, index: number, request: FlowRequest): Row => [
    name,
    request.flow.schema,
    queue,
    index,
    request.distinguisher,
    toTime(request.arrivalMs),
    request.estimate.initialSeats,
    request.estimate.finalSeats,
    formatGoDuration(request.estimate.additionalLatencyMs),
    toTime(request.startMs),
    ...(details ? describeRequest(request) : []),
  ];
  return [
    ...queueSet.queues.flatMap((queue, queueIndex) => [
      ...[...queue.waiting].map((request, index) => row(queueIndex, index, request)),
      ...[...queue.executing].map((request) => row(queueIndex, -1, request)),
    ]),
    ...[...queueSet.executing].map((request) => row(-1, -1, request)),
  ];
}

function describeRequest({ context: { info, user } }: FlowRequest): Row {
  const { verb, path, namespace, name, group, version, resource, subresource } = info;
  const apiVersion = version === "" ? "" : formatApiVersion(kubernetesGroup(group), version);
  return [user?.name ?? "", verb, path, namespace, name, apiVersion, resource, subresource];
}

function createTimeFormatter(clock: Clock): TimeFormatter {
  const offset = clock.now() - clock.monotonic();
  return (ms) => (ms === undefined ? NO_TIME : new Date(ms + offset).toISOString().replace(/\.?0*Z$/, "Z"));
}

/** As Kubernetes prints them: `1.50000000ss`. */
function formatSeatSeconds(value: number): string {
  return `${value.toFixed(8)}ss`;
}

/** The cells of a column have the same width; those of the last one have their own. */
function formatTable(rows: readonly Row[]): string {
  const texts = rows.map((row) => row.map((cell, index) => `${cell}${index === row.length - 1 ? "" : ","}`));
  const widths = (texts[0] ?? []).map((_, column) =>
    texts.reduce((width, row) => Math.max(width, (row[column]?.length ?? 0) + 1), CELL_WIDTH_MIN),
  );
  const lines = texts.map((row) =>
    row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join(""),
  );
  return `${lines.join("\n")}\n`;
}
