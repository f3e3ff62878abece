/** A request on its way through the stages, and how stages are put in a row. */
import type { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import { unauthorized } from "../../api/status.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import type { RequestInfo } from "./request-info.ts";

export interface RequestContext {
  readonly request: HttpRequest;
  readonly info: RequestInfo;
  /** Undefined until the authentication stage. */
  readonly user: UserInfo | undefined;
  /** Aborts when the client goes away or the deadline passes. Costs nothing until it is asked for. */
  readonly signal: AbortSignal;
  /** Sent as `Warning` headers. Handlers add to it. */
  readonly warnings: string[];
  /** For the audit log. */
  readonly annotations: AuditAnnotations;
}

export type RequestHandler = (context: RequestContext) => Promise<HttpResponse>;
export type RequestFilter = (next: RequestHandler) => RequestHandler;

/** The stages in request order around the handler. */
export function applyFilters(stages: readonly RequestFilter[], handler: RequestHandler): RequestHandler {
  return stages.reduceRight((next, stage) => stage(next), handler);
}

export function userOf(context: RequestContext): UserInfo {
  if (context.user === undefined) throw unauthorized();
  return context.user;
}

/** The same request from somebody else. Keeps the signal lazy, which spreading would not. */
export function withUser(context: RequestContext, user: RequestContext["user"]): RequestContext {
  return {
    request: context.request,
    info: context.info,
    user,
    warnings: context.warnings,
    annotations: context.annotations,
    get signal() {
      return context.signal;
    },
  };
}
