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
import { resourceName } from "./storage-metrics.ts";

const DURATION_SECONDS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
];
/** The buckets of SLI durations, without the shortest ones. */
export const SLI_SECONDS = DURATION_SECONDS.slice(2);
const FILTER_SECONDS = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 5, 10, 15, 30];
const SIZE_BYTES = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/** 50 kB to Kubernetes' limit of a body. */
const BODY_BYTES = Array.from({ length: 31 }, (_, index) => 50_000 + index * 100_000);
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
/** Values of the label `verb` of body sizes. */
const BODY_VERBS: Readonly<Record<string, string>> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  APPLY: "patch",
  DELETE: "delete",
  DELETECOLLECTION: "delete_collection",
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
const FIELD_VALIDATIONS: ReadonlySet<string> = new Set(["Ignore", "Strict", "Warn"]);
/** User agents of API servers. */
const SELF = /^(?:kube|svc)-apiserver\//;

/** The outermost request filter: measures every request and its response. */
export function withRequestMetrics(metrics: RequestMetrics, clock: Clock): RequestFilter {
  return (next) => async (context) => {
    const start = clock.monotonic();
    const series = metrics.seriesOf(context);
    const isLasting = isLongRunning(context.info);
    if (!isLasting) metrics.inFlight.enter(context.request.method, start);
    metrics.queued.roll(start);
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
    const { bodyLength: received, headers } = context.request;
    series.observeBody(received);
    if (SELF.test(headers["user-agent"] ?? "")) series.countSelfRequest();
    const validation = metrics.fieldValidationOf(context.info);
    if (!isStreamed(body)) {
      const seconds = (clock.monotonic() - start) / 1000;
      series.observe(status, seconds, bodyLength(body) ?? 0);
      validation.observe(seconds);
      return response;
    }
    series.longRunning?.inc();
    const ended = (bytes: number): void => {
      series.longRunning?.dec();
      const seconds = (clock.monotonic() - start) / 1000;
      series.observe(status, seconds, bytes);
      validation.observe(seconds);
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
  readonly #isDeletion: boolean;
  #bodySizes: Histogram | undefined;
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
    this.#isDeletion = verb === "DELETE" || verb === "DELETECOLLECTION";
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

  /** Undefined: no body was read. A deletion has an empty body then. */
  observeBody(bytes: number | undefined): void {
    if (bytes === undefined && !this.#isDeletion) return;
    const verb = BODY_VERBS[this.#target[0] ?? ""];
    if (verb === undefined) return;
    const [, group = "", , plural = ""] = this.#target;
    this.#bodySizes ??= this.#families.bodySizes.with(resourceName({ group, plural }), verb);
    this.#bodySizes.observe(bytes ?? 0);
  }

  countSelfRequest(): void {
    const [verb = "", , , resource = "", subresource = ""] = this.#target;
    this.#families.selfRequests.with(verb, resource, subresource).inc();
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
  readonly bodySizes: HistogramFamily;
  readonly fieldValidation: HistogramFamily;
  readonly selfRequests: CounterFamily;
  readonly handshakeErrors: CounterFamily;
}

/** Series by group, version, resource, subresource, verb and scope: a lookup without building a key string. */
type SeriesTree = Map<string, Map<string, Map<string, Map<string, Map<string, Map<string, RequestSeries>>>>>>;

export class RequestMetrics {
  readonly inFlight: InFlightGauge;
  /** Requests that wait for seats. */
  readonly queued: InFlightGauge;
  readonly filterDurations: HistogramFamily;
  readonly #registry: MetricRegistry;
  readonly #families: RequestFamilies;
  readonly #scheme: () => Scheme | undefined;
  readonly #unvalidated: Histogram;
  readonly #tree: SeriesTree = new Map();
  #changes = 0;

  /** `scheme` has the served kinds. Other requests get no series, so that clients cannot fill the memory. */
  constructor(registry: MetricRegistry, scheme: () => Scheme | undefined) {
    this.#registry = registry;
    // Before other collectors, which create the series of the served resources again.
    registry.onCollect(() => this.#removeRetired());
    this.#families = requestFamilies(registry);
    this.filterDurations = filterDurations(registry);
    this.inFlight = new InFlightGauge(registry, {
      name: "apiserver_current_inflight_requests",
      help:
        "Maximal number of currently used inflight request limit of this apiserver per request kind in " +
        "last second.",
      stability: "STABLE",
    });
    this.queued = new InFlightGauge(registry, {
      name: "apiserver_current_inqueue_requests",
      help: "Maximal number of queued requests in this apiserver per request kind in last second.",
      stability: "ALPHA",
    });
    this.#scheme = scheme;
    this.#unvalidated = this.#families.fieldValidation.with("");
  }

  readonly onHandshakeFailure = (): void => this.#families.handshakeErrors.with().inc();

  readonly onTermination = (context: RequestContext, code: number): void =>
    this.seriesOf(context)?.countTermination(code);

  /** The durations of requests with the same query parameter `fieldValidation`. */
  fieldValidationOf({ query }: RequestInfo): Histogram {
    const values = query.size === 0 ? [] : query.getAll("fieldValidation");
    const [value = ""] = values.length === 1 ? values : [];
    return FIELD_VALIDATIONS.has(value) ? this.#families.fieldValidation.with(value) : this.#unvalidated;
  }

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
      help:
        "Response latency distribution (not counting webhook duration and priority & fairness " +
        "queue wait times) in seconds for each verb, group, version, resource, subresource, scope " +
        "and component.",
      stability: alpha,
      labels: TARGET_LABELS,
    },
    SLI_SECONDS,
  );
  const slo = registry.histogram(
    {
      name: "apiserver_request_slo_duration_seconds",
      help:
        "Response latency distribution (not counting webhook duration and priority & fairness " +
        "queue wait times) in seconds for each verb, group, version, resource, subresource, scope " +
        "and component.",
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
      help:
        "Counter of apiserver requests broken out for each verb, dry run value, group, version, " +
        "resource, scope, component, and HTTP response code.",
      stability: stable,
      labels: [...TARGET_LABELS, "dry_run", "code"],
    }),
    duration: registry.histogram(
      {
        name: "apiserver_request_duration_seconds",
        help:
          "Response latency distribution in seconds for each verb, dry run value, group, version, " +
          "resource, subresource, scope and component.",
        stability: stable,
        labels: [...TARGET_LABELS, "dry_run"],
      },
      DURATION_SECONDS,
    ),
    sli,
    sizes: registry.histogram(
      {
        name: "apiserver_response_sizes",
        help:
          "Response size distribution in bytes for each group, version, verb, resource, " +
          "subresource, scope and component.",
        stability: stable,
        labels: TARGET_LABELS,
      },
      SIZE_BYTES,
    ),
    longRunning: registry.gauge({
      name: "apiserver_longrunning_requests",
      help:
        "Gauge of all active long-running apiserver requests broken out by verb, group, version, " +
        "resource, scope and component. Not all requests are tracked this way.",
      stability: stable,
      labels: TARGET_LABELS,
    }),
    deprecated: registry.gauge({
      name: "apiserver_requested_deprecated_apis",
      help:
        "Gauge of deprecated APIs that have been requested, broken out by API group, version, " +
        "resource, subresource, and removed_release.",
      stability: stable,
      labels: ["group", "version", "resource", "subresource", "removed_release"],
    }),
    aborts: registry.counter({
      name: "apiserver_request_aborts_total",
      help:
        "Number of requests which apiserver aborted possibly due to a timeout, for each group, " +
        "version, verb, resource, subresource and scope",
      stability: alpha,
      labels: TARGET_LABELS.slice(0, -1),
    }),
    terminations: registry.counter({
      name: "apiserver_request_terminations_total",
      help: "Number of requests which apiserver terminated in self-defense.",
      stability: alpha,
      labels: [...TARGET_LABELS, "code"],
    }),
    events: registry.counter({
      name: "apiserver_watch_events_total",
      help: "Number of events sent in watch clients",
      stability: alpha,
      labels: ["group", "version", "kind"],
    }),
    eventSizes: registry.histogram(
      {
        name: "apiserver_watch_events_sizes",
        help: "Watch event size distribution in bytes",
        stability: alpha,
        labels: ["group", "version", "kind"],
      },
      EVENT_BYTES,
    ),
    bodySizes: registry.histogram(
      {
        name: "apiserver_request_body_size_bytes",
        help: "Apiserver request body size in bytes broken out by resource and verb.",
        stability: alpha,
        labels: ["resource", "verb"],
      },
      BODY_BYTES,
    ),
    fieldValidation: registry.histogram(
      {
        name: "field_validation_request_duration_seconds",
        help: "Response latency distribution in seconds for each field validation value",
        stability: alpha,
        labels: ["field_validation"],
      },
      SLI_SECONDS,
    ),
    selfRequests: registry.counter({
      name: "apiserver_selfrequest_total",
      help: "Counter of apiserver self-requests broken out for each verb, API resource and subresource.",
      stability: alpha,
      labels: ["verb", "resource", "subresource"],
    }),
    handshakeErrors: registry.counter({
      name: "apiserver_tls_handshake_errors_total",
      help: "Number of requests dropped with 'TLS handshake error from' error",
      stability: alpha,
    }),
  };
}

function filterDurations(registry: MetricRegistry): HistogramFamily {
  return registry.histogram(
    {
      name: "apiserver_request_filter_duration_seconds",
      help: "Request filter latency distribution in seconds, for each filter type",
      stability: "ALPHA",
      labels: ["filter"],
    },
    FILTER_SECONDS,
  );
}
