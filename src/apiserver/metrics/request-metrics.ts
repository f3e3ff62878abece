/** Metrics of requests: counts, durations, response sizes and watch events. */
import { type Kind, removedRelease } from "../../api/kind.ts";
import type { Scheme } from "../../api/scheme.ts";
import { type HttpResponse, isAborted } from "../../http/message.ts";
import { bodyLength, isStreamed } from "../../http/server/write-body.ts";
import type {
  Counter,
  CounterFamily,
  Gauge,
  GaugeFamily,
  Histogram,
  HistogramFamily,
  MetricRegistry,
} from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { RequestContext, RequestFilter } from "../request/request-context.ts";
import { isLongRunning, type RequestInfo } from "../request/request-info.ts";
import { InFlightGauge } from "./in-flight-gauge.ts";
import { measureBody, type WatchSeries } from "./measured-stream.ts";
import { removeRetiredSeries } from "./retired-series.ts";

const DURATION_SECONDS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
];
/** The buckets of SLI durations, without the shortest ones. */
export const SLI_SECONDS = DURATION_SECONDS.slice(2);
const SIZE_BYTES = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const EVENT_BYTES = [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072];

const TARGET_LABELS = ["verb", "group", "version", "resource", "subresource", "scope", "component"];
const VERBS: Readonly<Record<string, string>> = {
  get: "GET",
  list: "LIST",
  watch: "WATCH",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
  deletecollection: "DELETECOLLECTION",
};
const CONNECT_SUBRESOURCES: ReadonlySet<string> = new Set(["attach", "exec", "portforward", "proxy"]);
/** Paths outside the API that have their own label value; the label `subresource` is the path. */
const PATHS: ReadonlySet<string> = new Set([
  "/healthz",
  "/livez",
  "/readyz",
  "/metrics",
  "/metrics/slis",
  "/openapi/v2",
  "/openapi/v3",
  "/version",
]);
const METHODS: ReadonlySet<string> = new Set(["get", "head", "post", "put", "patch", "delete"]);
const COMPONENT = "apiserver";

/** The outermost request filter: measures every request and its response. */
export function withRequestMetrics(metrics: RequestMetrics, clock: Clock): RequestFilter {
  return (next) => async (context) => {
    const start = clock.monotonic();
    const series = metrics.seriesOf(context);
    const isLasting = isLongRunning(context.info);
    if (!isLasting) metrics.inFlight.enter(context.request.method, start);
    let response: HttpResponse;
    try {
      response = await next(context);
    } finally {
      if (!isLasting) {
        metrics.inFlight.leave(context.request.method);
        if (isAborted(context.request)) series?.countAbort();
      }
    }
    if (series === undefined) return response;
    const { status, body } = response;
    if (!isStreamed(body)) {
      series.observe(status, (clock.monotonic() - start) / 1000, bodyLength(body) ?? 0);
      return response;
    }
    series.longRunning?.inc();
    const ended = (bytes: number): void => {
      series.longRunning?.dec();
      series.observe(status, (clock.monotonic() - start) / 1000, bytes);
    };
    return measureBody(response, body, ended, series.events);
  };
}

/** The series of requests with the same labels. */
class RequestSeries {
  readonly #total: CounterFamily;
  readonly #target: readonly string[];
  readonly #dryRun: string;
  readonly #families: RequestFamilies;
  readonly #duration: Histogram;
  readonly #sli: Histogram | undefined;
  readonly #sizes: Histogram | undefined;
  readonly #codes = new Map<number, Counter>();
  readonly longRunning: Gauge | undefined;
  readonly events: WatchSeries | undefined;

  constructor(families: RequestFamilies, target: readonly string[], dryRun: string, events: WatchSeries | undefined) {
    const [verb = ""] = target;
    this.#total = families.total;
    this.#target = target;
    this.#families = families;
    this.#dryRun = dryRun;
    this.#duration = families.duration.with(...target, dryRun);
    const lasts = verb === "WATCH" || verb === "CONNECT";
    this.#sli = lasts ? undefined : families.sli.with(...target);
    this.#sizes = verb === "GET" || verb === "LIST" ? families.sizes.with(...target) : undefined;
    this.longRunning = lasts || target[4] === "log" ? families.longRunning.with(...target) : undefined;
    this.events = events;
  }

  /** Counts a request whose client disconnected before the response. */
  countAbort(): void {
    const [verb = "", group = "", version = "", resource = "", subresource = "", scope = ""] = this.#target;
    this.#families.aborts.with(verb, group, version, resource, subresource, scope).inc();
  }

  /** Counts a request that the server terminated to protect itself. */
  countTermination(code: number): void {
    this.#families.terminations.with(...this.#target, String(code)).inc();
  }

  observe(status: number, seconds: number, bytes: number): void {
    let counter = this.#codes.get(status);
    if (counter === undefined) {
      counter = this.#total.with(...this.#target, this.#dryRun, String(status));
      this.#codes.set(status, counter);
    }
    counter.inc();
    this.#duration.observe(seconds);
    this.#sli?.observe(seconds);
    this.#sizes?.observe(bytes);
  }
}

interface RequestFamilies {
  readonly total: CounterFamily;
  readonly duration: HistogramFamily;
  readonly sli: HistogramFamily;
  readonly sizes: HistogramFamily;
  readonly longRunning: GaugeFamily;
  readonly deprecated: GaugeFamily;
  readonly aborts: CounterFamily;
  readonly terminations: CounterFamily;
  readonly events: CounterFamily;
  readonly eventSizes: HistogramFamily;
}

/** Series by group, version, resource, subresource, verb and scope: a lookup without building a key string. */
type SeriesTree = Map<string, Map<string, Map<string, Map<string, Map<string, Map<string, RequestSeries>>>>>>;

export class RequestMetrics {
  readonly inFlight: InFlightGauge;
  readonly #registry: MetricRegistry;
  readonly #families: RequestFamilies;
  readonly #scheme: () => Scheme | undefined;
  readonly #tree: SeriesTree = new Map();
  #changes = 0;

  /** `scheme` has the served kinds. Other requests get no series, so that clients cannot fill the memory. */
  constructor(registry: MetricRegistry, scheme: () => Scheme | undefined) {
    this.#registry = registry;
    // Before other collectors, which create the series of the served resources again.
    registry.onCollect(() => this.#removeRetired());
    this.#families = requestFamilies(registry);
    this.inFlight = new InFlightGauge(registry);
    this.#scheme = scheme;
  }

  readonly onTermination = (context: RequestContext, code: number): void =>
    this.seriesOf(context)?.countTermination(code);

  /** Undefined for kinds that are not served. */
  seriesOf(context: RequestContext): RequestSeries | undefined {
    const { info } = context;
    if (!info.isResourceRequest) return this.#pathSeries(info);
    const verb = verbOf(context);
    const scopeKey = scopeAndDryRun(info, verb);
    const found = this.#tree
      .get(info.group)
      ?.get(info.version)
      ?.get(info.resource)
      ?.get(info.subresource)
      ?.get(verb)
      ?.get(scopeKey);
    return found ?? this.#createSeries(info, verb, scopeKey);
  }

  #pathSeries(info: RequestInfo): RequestSeries | undefined {
    if (!METHODS.has(info.verb)) return undefined;
    const page = PATHS.has(info.path) ? info.path : "";
    const found = this.#tree.get("")?.get("")?.get("")?.get(page)?.get(info.verb)?.get("");
    if (found !== undefined) return found;
    const target = [info.verb.toUpperCase(), "", "", "", page, "", COMPONENT];
    return this.#insert(["", "", "", page, info.verb, ""], new RequestSeries(this.#families, target, "", undefined));
  }

  #createSeries(info: RequestInfo, verb: string, scopeKey: string): RequestSeries | undefined {
    const { group, version, resource, subresource } = info;
    const scheme = this.#scheme();
    const kind = scheme?.byResource(group, version, resource);
    if (
      scheme === undefined ||
      kind === undefined ||
      (subresource !== "" && !isSubresource(kind, subresource)) ||
      verb === ""
    )
      return undefined;
    this.#removeRetired();
    const [scope = "", dryRun = ""] = scopeKey.split(" ");
    const target = [verb, group, version, resource, subresource, scope, COMPONENT];
    if (kind.deprecation !== undefined) {
      this.#families.deprecated.with(group, version, resource, subresource, removedRelease(kind)).set(1);
    }
    const { events, eventSizes } = this.#families;
    const watched =
      verb === "WATCH"
        ? { total: events.with(group, version, kind.kind), sizes: eventSizes.with(group, version, kind.kind) }
        : undefined;
    const series = new RequestSeries(this.#families, target, dryRun, watched);
    return this.#insert([group, version, resource, subresource, verb, scopeKey], series);
  }

  /** Drops the series of removed kinds; the tree is filled again with those of the others. */
  #removeRetired(): void {
    const scheme = this.#scheme();
    if (scheme === undefined || scheme.changeCount === this.#changes) return;
    this.#changes = scheme.changeCount;
    this.#tree.clear();
    removeRetiredSeries(this.#registry, scheme);
  }

  #insert(path: readonly string[], series: RequestSeries): RequestSeries {
    let node = this.#tree as Map<string, unknown>;
    for (const step of path.slice(0, -1)) {
      let next = node.get(step) as Map<string, unknown> | undefined;
      if (next === undefined) {
        next = new Map();
        node.set(step, next);
      }
      node = next;
    }
    node.set(path.at(-1) ?? "", series);
    return series;
  }
}

function verbOf({ info, request }: RequestContext): string {
  if (info.verb === "patch" && request.headers["content-type"]?.startsWith("application/apply-patch+") === true) {
    return "APPLY";
  }
  return CONNECT_SUBRESOURCES.has(info.subresource) ? "CONNECT" : (VERBS[info.verb] ?? "");
}

/** Scope and dry run in one constant string, so that no string is built for a request. */
function scopeAndDryRun(info: RequestInfo, verb: string): string {
  const scope =
    info.name !== "" || verb === "POST" ? "resource" : info.namespace !== "" ? "namespace" : ("cluster" as const);
  if (verb === "GET" || verb === "LIST" || verb === "WATCH" || !info.query.has("dryRun")) return scope;
  return DRY_RUN_SCOPES[scope];
}

const DRY_RUN_SCOPES = { resource: "resource All", namespace: "namespace All", cluster: "cluster All" } as const;

function isSubresource(kind: Kind, name: string): boolean {
  return kind.subresources.some((subresource) => subresource.name === name);
}

function requestFamilies(registry: MetricRegistry): RequestFamilies {
  const stable = "STABLE" as const;
  const alpha = "ALPHA" as const;
  const sli = registry.histogram(
    {
      name: "apiserver_request_sli_duration_seconds",
      help: "Duration of requests in seconds, without long-running requests.",
      stability: alpha,
      labels: TARGET_LABELS,
    },
    SLI_SECONDS,
  );
  const slo = registry.histogram(
    {
      name: "apiserver_request_slo_duration_seconds",
      help: "Same as apiserver_request_sli_duration_seconds.",
      stability: alpha,
      labels: TARGET_LABELS,
      deprecatedSince: "1.27.0",
    },
    SLI_SECONDS,
  );
  registry.onCollect(() => {
    for (const series of sli.series()) slo.with(...series.values).copy(series);
  });
  return {
    total: registry.counter({
      name: "apiserver_request_total",
      help: "Requests by verb, resource, scope, dry run and status code of the response.",
      stability: stable,
      labels: [...TARGET_LABELS, "dry_run", "code"],
    }),
    duration: registry.histogram(
      {
        name: "apiserver_request_duration_seconds",
        help: "Duration of requests in seconds, from the headers to the end of the response.",
        stability: stable,
        labels: [...TARGET_LABELS, "dry_run"],
      },
      DURATION_SECONDS,
    ),
    sli,
    sizes: registry.histogram(
      {
        name: "apiserver_response_sizes",
        help: "Response sizes of get and list requests in bytes, before compression.",
        stability: stable,
        labels: TARGET_LABELS,
      },
      SIZE_BYTES,
    ),
    longRunning: registry.gauge({
      name: "apiserver_longrunning_requests",
      help: "Active long-running requests.",
      stability: stable,
      labels: TARGET_LABELS,
    }),
    deprecated: registry.gauge({
      name: "apiserver_requested_deprecated_apis",
      help: "1 for each deprecated API that was requested since the server started.",
      stability: stable,
      labels: ["group", "version", "resource", "subresource", "removed_release"],
    }),
    aborts: registry.counter({
      name: "apiserver_request_aborts_total",
      help: "Requests whose client disconnected before the response.",
      stability: alpha,
      labels: TARGET_LABELS.slice(0, -1),
    }),
    terminations: registry.counter({
      name: "apiserver_request_terminations_total",
      help: "Requests that the server terminated to protect itself, by status code of the response.",
      stability: alpha,
      labels: [...TARGET_LABELS, "code"],
    }),
    events: registry.counter({
      name: "apiserver_watch_events_total",
      help: "Events sent to watch clients.",
      stability: alpha,
      labels: ["group", "version", "kind"],
    }),
    eventSizes: registry.histogram(
      {
        name: "apiserver_watch_events_sizes",
        help: "Sizes of events sent to watch clients, in bytes.",
        stability: alpha,
        labels: ["group", "version", "kind"],
      },
      EVENT_BYTES,
    ),
  };
}
