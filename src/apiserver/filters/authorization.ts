import { forbidden, StatusError } from "../../api/status.ts";
import { escapeHtml, forbiddenMessage } from "../../auth/authz/reason.ts";
import type { Attributes, Authorization, Authorizer } from "../../auth/user.ts";
import type { HttpResponse } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { type Logger, silentLogger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type RequestContext, type RequestFilter, type RequestHandler, userOf } from "../request/request-context.ts";
import { statusResponse } from "../responses/status-response.ts";

/** Audit annotations. */
const DECISION = "authorization.k8s.io/decision";
const REASON = "authorization.k8s.io/reason";
/** The verbosity of kube-apiserver's line for a request that is forbidden. */
const DECISION_LEVEL = 4;

/**
 * Responds 403 to requests that no authorizer allows, and 500 when an authorizer failed. `selectors`: whether the
 * attributes include field and label selectors.
 */
export function withAuthorization(
  authorizer: Authorizer,
  clock: Clock,
  selectors = true,
  log: Logger = silentLogger,
): RequestFilter {
  return (next) => (context) => {
    const attributes = authorizerAttributes(context, selectors);
    const began = context.audit === undefined ? 0 : clock.monotonic();
    const authorization = authorizer.authorize(attributes);
    // Mostly no promise, which would delay every request.
    if (!(authorization instanceof Promise)) return respond(context, attributes, authorization, next);
    return authorization.then((settled) => {
      context.audit?.setLatency("authorization", clock.monotonic() - began);
      return respond(context, attributes, settled, next);
    });
  };

  function respond(
    context: RequestContext,
    attributes: Attributes,
    { decision, reason, error }: Authorization,
    next: RequestHandler,
  ): Promise<HttpResponse> {
    if (context.audit !== undefined) {
      if (error === undefined) context.annotations.add(DECISION, decision === "allow" ? "allow" : "forbid");
      context.annotations.add(REASON, error === undefined ? reason : "internal error");
    }
    const lines = log.v(DECISION_LEVEL);
    if (lines !== undefined) logDecision(lines, context, { decision, reason, error });
    if (decision === "allow") return next(context);
    if (error === undefined) return Promise.resolve(forbiddenResponse(forbiddenError(attributes, reason), context));
    const { path, query } = context.request;
    const target = query === "" ? path : `${path}?${query}`;
    const text = `Internal Server Error: ${escapeHtml(`${JSON.stringify(target)}: ${error}`)}\n`;
    return Promise.resolve(textResponse(500, text));
  }
}

function logDecision(log: Logger, context: RequestContext, { decision, reason, error }: Authorization): void {
  const { verb, path } = context.info;
  const message = decision === "allow" ? "Allowed" : error === undefined ? "Forbidden" : "Authorization failed";
  log.info(message, { URI: path, verb, user: context.user?.name, decision, reason, error });
}

function forbiddenResponse({ status }: StatusError, context: RequestContext): HttpResponse {
  const response = statusResponse(status, context);
  return { ...response, headers: { ...response.headers, "x-content-type-options": "nosniff" } };
}

/** Throws a 403 when the request is not allowed. */
export async function requireAuthorized(authorizer: Authorizer, attributes: Attributes): Promise<void> {
  const { decision, reason } = await authorizer.authorize(attributes);
  if (decision !== "allow") throw forbiddenError(attributes, reason);
}

const UNSAFE_DELETE = "unsafe-delete-ignore-read-errors";

/** Throws a 403 when the user may not delete objects that cannot be read. */
export async function requireUnsafeDelete(authorizer: Authorizer, context: RequestContext): Promise<void> {
  const { info } = context;
  const { decision, reason } = await authorizer.authorize({ ...authorizerAttributes(context), verb: UNSAFE_DELETE });
  if (decision === "allow") return;
  const subject = { group: info.group, resource: info.resource, name: info.name };
  throw forbidden(subject, `not permitted to do "${UNSAFE_DELETE}", reason: ${reason}`);
}

/** Verbs whose selectors are part of the attributes. */
const SELECTOR_VERBS: ReadonlySet<string> = new Set(["list", "watch", "deletecollection"]);

export function authorizerAttributes(context: RequestContext, selectors = true): Attributes {
  const { info } = context;
  const usesSelectors = selectors && SELECTOR_VERBS.has(info.verb);
  const fieldSelector = usesSelectors ? info.query.get("fieldSelector") : null;
  const labelSelector = usesSelectors ? info.query.get("labelSelector") : null;
  return {
    user: userOf(context),
    verb: info.verb,
    isResourceRequest: info.isResourceRequest,
    namespace: info.namespace,
    apiGroup: info.group,
    apiVersion: info.version,
    resource: info.resource,
    subresource: info.subresource,
    name: info.name,
    path: info.path,
    ...(fieldSelector === null ? {} : { fieldSelector }),
    ...(labelSelector === null ? {} : { labelSelector }),
  };
}

function forbiddenError(attributes: Attributes, reason: string): StatusError {
  const why = forbiddenMessage(attributes, reason);
  if (!attributes.isResourceRequest) return new StatusError(403, "Forbidden", `forbidden: ${why}`, { details: {} });
  return forbidden({ group: attributes.apiGroup, resource: attributes.resource, name: attributes.name }, why);
}
