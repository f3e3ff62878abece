/** Spans of requests and of the filters: Kubernetes' WithTracing and filter latency, and the log of slow requests. */
import { MASTERS } from "../../auth/user.ts";
import type { HttpResponse } from "../../http/message.ts";
import { bodyLength, isStreamed } from "../../http/server/write-body.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { HistogramFamily } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { formatGoDuration } from "../../std/time/go-duration.ts";
import { createSlowTraceLogger } from "../../tracing/slow-trace.ts";
import {
  type Attributes,
  currentSpan,
  HTTP_SCOPE,
  inExportedSpan,
  SLOW_MS,
  Trace,
  type TraceOptions,
} from "../../tracing/span.ts";
import { parseTraceContext } from "../../tracing/trace-context.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import { measureBody } from "../metrics/measured-stream.ts";
import type { RequestContext, RequestFilter } from "../request/request-context.ts";
import { isLongRunning, requestScope } from "../request/request-info.ts";
import { addLogField, loggedVerb, REQUEST_LEVEL, redactQuery, shortAuditId } from "./request-log.ts";

export interface FilterTracingDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined: no traces are exported. */
  readonly tracer: Tracer | undefined;
  /** The histogram, in seconds, by the names of the filters. */
  readonly filterDurations?: HistogramFamily | undefined;
}

/** Users whose trace context is trusted: every other caller could make the server record all of its requests. */
const TRUSTED_GROUPS: readonly string[] = [MASTERS, "system:monitoring"];
const USER_AGENT_LENGTH_MAX = 1024;
/** The log of requests has the latencies of filters above it. */
const LOGGED_FILTER_MS = 100;

type OnSlow = NonNullable<TraceOptions["onSlow"]>;

/** The filters for one server: they share its logger of slow requests. */
export class RequestTracing {
  readonly #deps: FilterTracingDeps;
  readonly #onSlow: OnSlow;

  constructor(deps: FilterTracingDeps) {
    this.#deps = deps;
    this.#onSlow = createSlowTraceLogger(deps.log.child("trace"), deps.clock);
  }

  /** The span of the whole request, until the end of its response. Not needed without a tracer. */
  readonly server: RequestFilter = (next) => {
    const { tracer } = this.#deps;
    if (tracer === undefined) return next;
    return async (context) => {
      const { request } = context;
      const options = {
        name: spanName(context),
        kind: "server",
        scope: HTTP_SCOPE,
        attributes: () => serverAttributes(context),
      } as const;
      const span = tracer.start(options, { remote: parseTraceContext(request.headers), onSlow: this.#onSlow });
      try {
        const response = await span.enter(() => next(context));
        span.setHttpStatus(response.status);
        if (!isStreamed(response.body)) {
          span.set({ "http.wrote_bytes": bodyLength(response.body) ?? 0 });
          span.end();
          return response;
        }
        // The parts of the handler are over; a watch would keep them for as long as it lasts.
        return measureBody(response, response.body, () => span.end(), undefined);
      } catch (error) {
        span.fail(error);
        throw error;
      }
    };
  };

  /** Measures a filter: its span contains those of the filters and the handler that follow, as in Kubernetes. */
  filter(name: string, filter: RequestFilter): RequestFilter {
    const { tracer, clock, log, filterDurations } = this.#deps;
    const requests = log.child("httplog");
    const durations = filterDurations?.with(name);
    return (next) => {
      const filtered = filter((context) => {
        const { filterTiming: timing } = context;
        if (timing?.ms === undefined) return next(context);
        const now = clock.monotonic();
        const ms = now - timing.ms;
        // The next filter begins here: one reading of the clock for both.
        timing.ms = now;
        durations?.observe(ms / 1000);
        if (ms > LOGGED_FILTER_MS && requests.v(REQUEST_LEVEL) !== undefined) {
          addLogField(context.request, `fl_${name}`, formatGoDuration(ms));
        }
        return next(context);
      });
      const handle = (context: RequestContext): Promise<HttpResponse> => {
        const { filterTiming: timing } = context;
        if (timing !== undefined) timing.ms ??= clock.monotonic();
        return filtered(context);
      };
      if (tracer === undefined) return handle;
      const options = { name, scope: "k8s.op/apiserver/pkg/endpoints/filterlatency" } as const;
      return async (context) => await inExportedSpan(options, () => handle(context));
    };
  }

  /** Decides whether the trace is sampled, once the user is known. */
  readonly sampling: RequestFilter = (next) => {
    if (this.#deps.tracer === undefined) return next;
    return (context) => {
      const isTrusted = context.user?.groups.some((group) => TRUSTED_GROUPS.includes(group)) === true;
      currentSpan()?.trace.decide(isTrusted);
      return next(context);
    };
  };

  /** The span of the handler, which is logged with its steps when it is slow. */
  readonly handler: RequestFilter = (next) => (context) => {
    const { request, info } = context;
    const name = HANDLER_NAMES[info.verb];
    if (!info.isResourceRequest || name === undefined || isLongRunning(info)) return next(context);
    const options = { name, attributes: () => handlerAttributes(context) };
    const outer = currentSpan();
    const remote = request.headers.traceparent === undefined ? undefined : parseTraceContext(request.headers);
    const span =
      outer === undefined || !outer.trace.exports
        ? new Trace({ clock: this.#deps.clock, onSlow: this.#onSlow, remote }).start(options, SLOW_MS)
        : outer.child(options, SLOW_MS);
    if (span === undefined) return next(context);
    context.audit?.setTrace(span.trace);
    return Promise.resolve(span.run(() => next(context)));
  };
}

/** The names of the handlers' spans in Kubernetes. */
const HANDLER_NAMES: Readonly<Record<string, string>> = {
  get: "Get",
  list: "List",
  create: "Create",
  update: "Update",
  patch: "Patch",
  delete: "Delete",
  deletecollection: "Delete",
};

/** `GET /api/v1/namespaces/{:namespace}/pods/{:name}`: without names, so that it has few values. */
function spanName({ request: { method }, info }: RequestContext): string {
  if (!info.isResourceRequest) return method;
  const { group, version, namespace, resource, name, subresource } = info;
  const parts = [group === "" ? "/api" : `/apis/${group}`, version];
  if (namespace !== "") parts.push("namespaces", "{:namespace}");
  parts.push(resource);
  if (name !== "") parts.push("{:name}");
  if (subresource !== "") parts.push(subresource);
  return `${method} ${parts.join("/")}`;
}

function serverAttributes({ request, auditId }: RequestContext): Attributes {
  const { method, path, query, headers, peer } = request;
  const [client] = (headers["x-forwarded-for"] ?? "").split(",");
  const userAgent = headers["user-agent"];
  const host = headers[":authority"] ?? headers.host;
  return {
    "http.method": method,
    "http.scheme": peer.encrypted ? "https" : "http",
    ...(host === undefined ? {} : { "net.host.name": host.replace(/:\d+$/, "") }),
    "net.sock.peer.addr": peer.address,
    "net.sock.peer.port": peer.port,
    ...(userAgent === undefined ? {} : { "user_agent.original": userAgent }),
    ...(client === undefined || client === "" ? {} : { "http.client_ip": client.trim() }),
    // Parameters may hold secrets: tokens, commands.
    "http.target": query === "" ? path : `${path}?${redactQuery(query)}`,
    "net.protocol.version": peer.protocol === "h2" ? "2.0" : "1.1",
    "audit-id": shortAuditId(auditId),
  };
}

function handlerAttributes({ request, info, auditId }: RequestContext): Attributes {
  const { headers, path, peer } = request;
  return {
    accept: headers.accept ?? "",
    "audit-id": shortAuditId(auditId),
    client: peer.protocol === "local" ? "local" : peer.address,
    "api-group": info.group,
    "api-version": info.version,
    name: info.name,
    subresource: info.subresource,
    namespace: info.namespace,
    protocol: peer.protocol === "h2" ? "HTTP/2.0" : "HTTP/1.1",
    resource: info.resource,
    scope: requestScope(info),
    url: path,
    "user-agent": (headers["user-agent"] ?? "").slice(0, USER_AGENT_LENGTH_MAX),
    verb: loggedVerb(request, info),
  };
}
