/** Logs requests: Kubernetes' httplog at -v=3, and what they changed at -v=2. */
import { type HttpRequest, type HttpResponse, headerText } from "../../http/message.ts";
import { isStreamed } from "../../http/server/write-body.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { formatGoDuration } from "../../std/time/go-duration.ts";
import { measureBody } from "../metrics/measured-stream.ts";
import type { RequestContext, RequestFilter, RequestHandler } from "../request/request-context.ts";
import { type RequestInfo, requestScope } from "../request/request-info.ts";

/** The verbosity of kube-apiserver's request log. */
export const REQUEST_LEVEL = 3;
const CHANGE_LEVEL = 2;

/** Query parameters whose values are logged. Others may hold secrets: tokens, commands. */
const LOGGED_PARAMETERS = new Set(
  (
    "allowWatchBookmarks container continue dryRun fieldManager fieldSelector fieldValidation follow force " +
    "gracePeriodSeconds labelSelector limit limitBytes orphanDependents pretty previous propagationPolicy " +
    "resourceVersion resourceVersionMatch sendInitialEvents sinceSeconds sinceTime stream tailLines timeout " +
    "timeoutSeconds timestamps verbose watch"
  ).split(" "),
);

/** Characters of an error response in the log. */
const ERROR_LENGTH_MAX = 1024;
/** Kubernetes' limit for the ID in spans and logs. */
const AUDIT_ID_LENGTH_MAX = 64;

/** What filters add to the line of a request. Nothing is kept of requests that are not logged. */
const addedFields = new WeakMap<HttpRequest, Record<string, unknown>>();

/** Adds a field to the line of a request, if it is logged. */
export function addLogField(request: HttpRequest, key: string, value: unknown): void {
  const fields = addedFields.get(request);
  if (fields !== undefined) fields[key] = value;
}

/** Traces of the stack for the lines of requests that failed. */
const statusStacks = new WeakMap<HttpRequest, string>();

/** Adds the stack of the error that a response with a code of 500 or more reports, if the request is logged. */
export function logStatusStack(request: HttpRequest, error: unknown): void {
  if (addedFields.has(request) && error instanceof Error)
    statusStacks.set(request, `\n${error.stack ?? error.message}`);
}

/** Streams are logged when they end. */
export function withRequestLog(log: Logger, clock: Clock): RequestFilter {
  return (next) => (context) => {
    const lines = log.v(REQUEST_LEVEL);
    return lines === undefined ? next(context) : logRequest(lines, clock, context, next);
  };
}

async function logRequest(
  lines: Logger,
  clock: Clock,
  context: RequestContext,
  next: RequestHandler,
): Promise<HttpResponse> {
  const start = clock.monotonic();
  const { request } = context;
  const added: Record<string, unknown> = {};
  addedFields.set(request, added);
  const write = (end: Readonly<Record<string, unknown>>): void => {
    const latency = formatGoDuration(clock.monotonic() - start);
    lines.info("HTTP", { ...describeRequest(context, latency), ...added, ...end });
  };
  let response: HttpResponse;
  try {
    response = await next(context);
  } catch (error) {
    // The connection ends without a response.
    write({ resp: 0 });
    throw error;
  }
  const { status, body } = response;
  if (!isStreamed(body)) {
    write({ resp: status, ...(status >= 500 ? describeFailure(request, body) : {}) });
    return response;
  }
  return measureBody(response, body, () => write(status === 101 ? { hijacked: true } : { resp: status }), undefined);
}

function describeRequest(
  { request, info, auditId }: RequestContext,
  latency: string,
): Readonly<Record<string, string>> {
  const { path, query, peer } = request;
  return {
    verb: loggedVerb(request, info),
    URI: query === "" ? path : `${path}?${redactQuery(query)}`,
    latency,
    userAgent: headerText(request, "user-agent") ?? "",
    "audit-ID": shortAuditId(auditId),
    srcIP: peer.protocol === "local" ? "local" : `${formatHost(peer.address)}:${peer.port}`,
  };
}

function formatHost(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

/** Kubernetes' CleanVerb: the method, but for lists, watches and applies. */
export function loggedVerb({ method, headers }: HttpRequest, info: RequestInfo): string {
  if (info.verb === "watch") return "WATCH";
  if (method === "PATCH" && headers["content-type"]?.startsWith("application/apply-patch+") === true) return "APPLY";
  if (method !== "GET" && method !== "HEAD") return method;
  const scope = requestScope(info);
  return scope === "resource" || scope === "" ? "GET" : "LIST";
}

export function shortAuditId(auditId: string): string {
  return auditId.length <= AUDIT_ID_LENGTH_MAX ? auditId : `${auditId.slice(0, AUDIT_ID_LENGTH_MAX)}...`;
}

export function redactQuery(query: string): string {
  return query.replace(/([^&=]*)=[^&]*/g, (pair, name: string) => (LOGGED_PARAMETERS.has(name) ? pair : `${name}=…`));
}

/** The members of kube-apiserver's line in their order. */
function describeFailure(request: HttpRequest, body: HttpResponse["body"]): Readonly<Record<string, string>> {
  const statusStack = statusStacks.get(request);
  return { ...(statusStack === undefined ? {} : { statusStack }), addedInfo: describeError(body) };
}

function describeError(body: HttpResponse["body"]): string {
  const chunks = body instanceof Uint8Array ? [body] : (body as readonly Uint8Array[]);
  const text = Buffer.concat(chunks).toString().slice(0, ERROR_LENGTH_MAX);
  return `\nlogging error output: ${JSON.stringify(text)}\n`;
}

const CHANGING_VERBS: ReadonlySet<string> = new Set(["create", "update", "patch", "delete", "deletecollection"]);
/** What components write all the time; the log of requests has it. */
const FREQUENT_RESOURCES: ReadonlySet<string> = new Set(["endpoints", "endpointslices", "events", "leases"]);
/** What is stored of these is an object's own; the rest streams, or requests a decision. */
const STORED_SUBRESOURCES: ReadonlySet<string> = new Set(["", "approval", "binding", "eviction", "finalize", "scale"]);

/** The names of created objects, which their paths do not have, of requests whose changes are logged. */
const createdNames = new WeakMap<HttpRequest, string>();

/** Adds the name of the object that the request created to the line of its change, if that is logged. */
export function logCreatedName(request: HttpRequest, name: string | undefined): void {
  if (name !== undefined && createdNames.has(request)) createdNames.set(request, name);
}

/** Logs what requests changed. Inside of authentication, whose user is in the line. */
export function withChangeLog(log: Logger): RequestFilter {
  return (next) => (context) => {
    const lines = log.v(CHANGE_LEVEL);
    if (lines === undefined) return next(context);
    if (context.info.verb === "create") createdNames.set(context.request, context.info.name);
    return next(context).then((response) => {
      logChange(lines, context, response.status);
      return response;
    });
  };
}

function logChange(log: Logger, { request, info, user }: RequestContext, status: number): void {
  const { verb, group, version, resource, subresource, namespace } = info;
  const isStored = STORED_SUBRESOURCES.has(subresource) && !resource.endsWith("reviews");
  if (!info.isResourceRequest || !CHANGING_VERBS.has(verb) || status >= 300 || !isStored) return;
  if (FREQUENT_RESOURCES.has(resource) || info.query.get("dryRun") !== null) return;
  const name = createdNames.get(request) ?? info.name;
  log.info("Changed", {
    verb,
    resource: [resource, ...(group === "" ? [] : [group])].join("."),
    version,
    ...(subresource === "" ? {} : { subresource }),
    ...(namespace === "" ? {} : { namespace }),
    ...(name === "" ? {} : { name }),
    user: user?.name,
    resp: status,
  });
}
