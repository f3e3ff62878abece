/** The context of a request in the handler chain, and the filters that work on it. */
import type { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import { unauthorized } from "../../api/status.ts";
import type { RequestAudit } from "../../audit/request-audit.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import type { RequestInfo } from "./request-info.ts";

export interface RequestContext {
  readonly request: HttpRequest;
  readonly info: RequestInfo;
  /** Milliseconds since 1970; undefined for a request that is not recorded. */
  readonly receivedAt?: number | undefined;
  /** Undefined before `withAuthentication`. */
  readonly user: UserInfo | undefined;
  /** Aborts when the client disconnects or the deadline passes. Created on first access. */
  readonly signal: AbortSignal;
  /** Sent as `Warning` headers. Handlers add to it. */
  readonly warnings: string[];
  /** The `audit-id` header of the request, or a random UUID. */
  readonly auditId: string;
  /** Audit annotations. */
  readonly annotations: AuditAnnotations;
  /** Undefined: nothing of the request is recorded. */
  readonly audit?: RequestAudit | undefined;
  /** Headers of the response, whatever it is; filters add to them. A header that the handler sets takes precedence. */
  readonly responseHeaders?: Record<string, string> | undefined;
  /** Undefined: the filters of the request are not measured. */
  readonly filterTiming?: FilterTiming | undefined;
  /** Set for a watch that takes seats of its priority level until it is initialized. */
  readonly watch?: WatchLifecycle | undefined;
}

/** When the last filter that is measured ended, or the next one began. */
export interface FilterTiming {
  /** Monotonic; undefined before the first one. */
  ms: number | undefined;
}

/** Receives the steps of a watch. Each may be called more than once, and `ended` without the others. */
export interface WatchLifecycle {
  /** A handler reports the steps; without it the watch ends with the handler. */
  claim(): void;
  /** The initial events are sent. */
  initialized(): void;
  ended(): void;
}

export type RequestHandler = (context: RequestContext) => Promise<HttpResponse>;
export type RequestFilter = (next: RequestHandler) => RequestHandler;

/** Wraps the handler in the filters; a request passes them in the order of the list. */
export function applyFilters<H>(filters: readonly ((next: H) => H)[], handler: H): H {
  return filters.reduceRight((next, filter) => filter(next), handler);
}

export function userOf(context: RequestContext): UserInfo {
  if (context.user === undefined) throw unauthorized();
  return context.user;
}

/** Returns the same request with another user. The signal stays lazy, which an object spread would not preserve. */
export function withUser(context: RequestContext, user: RequestContext["user"]): RequestContext {
  return new DerivedContext(context, user, context.audit, context.watch);
}

/** Returns the same request, which is recorded. */
export function withRequestAudit(context: RequestContext, audit: RequestAudit): RequestContext {
  return new DerivedContext(context, context.user, audit, context.watch);
}

/** Returns the same request, a watch, whose handler reports its steps. */
export function withWatchLifecycle(context: RequestContext, watch: WatchLifecycle): RequestContext {
  return new DerivedContext(context, context.user, context.audit, watch);
}

/**
 * The members of another context, some of them replaced. A class: literals with a getter create a function and an
 * accessor for each request.
 */
export class DerivedContext implements RequestContext {
  readonly request: RequestContext["request"];
  readonly info: RequestContext["info"];
  readonly receivedAt: RequestContext["receivedAt"];
  readonly user: RequestContext["user"];
  readonly warnings: RequestContext["warnings"];
  readonly auditId: RequestContext["auditId"];
  readonly annotations: RequestContext["annotations"];
  readonly audit: RequestContext["audit"];
  readonly responseHeaders: RequestContext["responseHeaders"];
  readonly filterTiming: RequestContext["filterTiming"];
  readonly watch: RequestContext["watch"];
  readonly #outer: RequestContext;

  constructor(
    outer: RequestContext,
    user: RequestContext["user"],
    audit: RequestContext["audit"],
    watch: RequestContext["watch"],
  ) {
    this.request = outer.request;
    this.info = outer.info;
    this.receivedAt = outer.receivedAt;
    this.user = user;
    this.warnings = outer.warnings;
    this.auditId = outer.auditId;
    this.annotations = outer.annotations;
    this.audit = audit;
    this.responseHeaders = outer.responseHeaders;
    this.filterTiming = outer.filterTiming;
    this.watch = watch;
    this.#outer = outer;
  }

  get signal(): AbortSignal {
    return this.#outer.signal;
  }
}

/** Returns the same request with a signal that never aborts: for work that does not end half-way. */
export function withoutEnd(context: RequestContext): RequestContext {
  const { request, info, user, warnings, auditId, annotations, audit, responseHeaders } = context;
  const { signal } = new AbortController();
  return { request, info, user, warnings, auditId, annotations, audit, responseHeaders, signal };
}
