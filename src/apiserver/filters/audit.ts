/** Records requests: Kubernetes' WithAudit and WithFailedAuthenticationAudit. */
import { Readable } from "node:stream";
import { StatusError } from "../../api/status.ts";
import type { Auditor } from "../../audit/auditor.ts";
import type { AuditAttributes, Stage } from "../../audit/policy.ts";
import { RequestAudit } from "../../audit/request-audit.ts";
import { sourceIps } from "../../audit/source-ips.ts";
import { type HttpResponse, headerText } from "../../http/message.ts";
import { isStreamed } from "../../http/server/write-body.ts";
import { wrapStream } from "../../http/value-stream.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type RequestContext, type RequestFilter, withRequestAudit } from "../request/request-context.ts";
import { isLongRunning, type RequestInfo } from "../request/request-info.ts";
import { recordStatus } from "../responses/status-response.ts";
import { isUnexpected, toStatus, withErrorResponses } from "./error-responses.ts";

const USER_AGENT_LENGTH_MAX = 1024;

/** Records requests of authenticated users. Inside of it errors are responses, so that they are recorded as such. */
export function withAudit(auditor: Auditor, clock: Clock, log: Logger): RequestFilter {
  return (next) => {
    const respond = withErrorResponses(log)(next);
    return async (context) => {
      const audit = beginAudit(auditor, clock, context);
      if (audit === undefined) return await respond(context);
      audit.setLatency("authentication", clock.now() - audit.receivedAt);
      const record = (stage: Stage, code?: number) => recordStage(auditor, clock, audit, stage, code);
      if (!(await record("RequestReceived"))) {
        auditor.countRejected();
        throw new StatusError(500, "InternalError", "Internal error occurred: failed to store audit event");
      }
      let panicked = false;
      const observed = withErrorResponses(log)(async (inner) => {
        try {
          return await next(inner);
        } catch (error) {
          panicked = isUnexpected(error);
          throw error;
        }
      });
      const response = await observed(withRequestAudit(context, audit));
      const { status } = response;
      // These record the start of their response as well.
      if (isLongRunning(context.info)) await record("ResponseStarted", status);
      const complete = async (): Promise<void> => {
        await record(panicked ? "Panic" : "ResponseComplete", status);
      };
      const { body } = response;
      if (isStreamed(body)) return whenEnded({ ...response, body }, context, complete, { audit, clock });
      await complete();
      return response;
    };
  };
}

/** Records requests that are refused because they are not authenticated; only the start of their response. */
export function withFailedAuthenticationAudit(auditor: Auditor, clock: Clock): RequestFilter {
  return (next) => async (context) => {
    try {
      return await next(context);
    } catch (error) {
      const audit = beginAudit(auditor, clock, context);
      if (audit !== undefined) {
        const status = toStatus(error);
        recordStatus(audit, status);
        await recordStage(auditor, clock, audit, "ResponseStarted", status.code);
      }
      throw error;
    }
  };
}

/** Undefined: the policy records nothing of the request. */
function beginAudit(auditor: Auditor, clock: Clock, context: RequestContext): RequestAudit | undefined {
  const { request, info, user, auditId, annotations } = context;
  const attributes: AuditAttributes = { ...info, user };
  const decision = auditor.decide(attributes);
  if (decision.level === "None") return undefined;
  const metadata = {
    auditId,
    requestUri: request.query === "" ? request.path : `${request.path}?${request.query}`,
    verb: info.verb,
    user,
    sourceIps: sourceIps(request.headers, request.peer.address),
    userAgent: shorten(headerText(request, "user-agent") ?? ""),
    objectRef: info.isResourceRequest ? objectReference(info) : undefined,
    receivedAt: context.receivedAt ?? clock.now(),
  };
  return new RequestAudit(decision, metadata, () => annotations.entries);
}

function shorten(userAgent: string): string {
  if (userAgent.length <= USER_AGENT_LENGTH_MAX) return userAgent;
  return `${userAgent.slice(0, USER_AGENT_LENGTH_MAX)}...TRUNCATED`;
}

function objectReference({ resource, namespace, name, group, version, subresource }: RequestInfo) {
  return {
    resource: resource || undefined,
    namespace: namespace || undefined,
    name: name || undefined,
    apiGroup: group || undefined,
    apiVersion: version || undefined,
    subresource: subresource || undefined,
  };
}

/** False: a backend in mode `blocking-strict` failed. */
function recordStage(
  auditor: Auditor,
  clock: Clock,
  audit: RequestAudit,
  stage: Stage,
  code?: number,
): MaybePromise<boolean> {
  const at = stage === "RequestReceived" ? audit.receivedAt : clock.now();
  return andThen(audit.event(stage, at, code), (event) => event === undefined || auditor.process(event));
}

/** Passes the chunks on, and measures the time in which they are created and written. */
async function* measureChunks<V>(stream: AsyncIterable<V>, audit: RequestAudit, clock: Clock): AsyncGenerator<V> {
  let began = clock.monotonic();
  const add = (layer: "serialize" | "write"): void => {
    const now = clock.monotonic();
    audit.addLatency(layer, now - began);
    began = now;
  };
  for await (const chunk of stream) {
    add("serialize");
    yield chunk;
    add("write");
  }
  add("serialize");
}

/** The same response; `complete` is called once, when its body ends, or when the client disconnects before. */
function whenEnded(
  response: HttpResponse & { readonly body: AsyncIterable<Uint8Array> },
  { request }: RequestContext,
  complete: () => Promise<void>,
  { audit, clock }: { readonly audit: RequestAudit; readonly clock: Clock },
): HttpResponse {
  const { body } = response;
  let completed: Promise<void> | undefined;
  const end = (): Promise<void> => {
    completed ??= complete();
    return completed;
  };
  // A body that was never read has no end.
  request.signal.addEventListener("abort", () => void end(), { once: true });
  // An upgraded connection is copied without the steps of an iterator.
  if (body instanceof Readable) {
    if (body.closed) void end();
    else body.once("close", () => void end());
    return response;
  }
  async function* observe<V>(stream: AsyncIterable<V>): AsyncGenerator<V> {
    try {
      // A watch has no end, and its time is not that of writing.
      if (response.finite === true) yield* measureChunks(stream, audit, clock);
      else yield* stream;
    } finally {
      await end();
    }
  }
  return { ...response, body: wrapStream(body, observe) };
}
