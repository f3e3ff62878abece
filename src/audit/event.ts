/** Audit events, and their encoding as JSON and as a line of text. */
import type { Status } from "../api/status.ts";
import type { UserInfo } from "../auth/user.ts";
import { goQuote } from "../schema/value/go-quote.ts";
import type { Level, Stage } from "./policy.ts";

export interface ObjectReference {
  readonly resource?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly uid?: string | undefined;
  readonly apiGroup?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly subresource?: string | undefined;
}

/** A Status whose code is that of the response; of a response that is no Status, only the code. */
export type ResponseStatus = Partial<Omit<Status, "kind" | "apiVersion">> & { readonly code: number };

export interface AuditEvent {
  readonly level: Level;
  readonly auditId: string;
  readonly stage: Stage;
  readonly requestUri: string;
  readonly verb: string;
  /** Undefined: the request is not authenticated. */
  readonly user: UserInfo | undefined;
  readonly impersonatedUser?: UserInfo | undefined;
  readonly sourceIps: readonly string[];
  readonly userAgent: string;
  readonly objectRef?: ObjectReference | undefined;
  readonly responseStatus?: ResponseStatus | undefined;
  /** JSON. */
  readonly requestObject?: string | undefined;
  /** JSON. */
  readonly responseObject?: string | undefined;
  /** Milliseconds since 1970. */
  readonly receivedAt: number;
  readonly stageAt: number;
  readonly annotations: ReadonlyMap<string, string>;
}

/** `apiVersion` is that of `--audit-log-version`. The members are in Kubernetes' order. */
export function encodeEvent(event: AuditEvent, apiVersion: string): string {
  return `{"kind":"Event","apiVersion":${JSON.stringify(apiVersion)},${encodeMembers(event)}}`;
}

export function encodeEventList(events: readonly AuditEvent[], apiVersion: string): string {
  const items = events.map((event) => `{${encodeMembers(event)}}`).join(",");
  return `{"kind":"EventList","apiVersion":${JSON.stringify(apiVersion)},"metadata":{},"items":[${items}]}`;
}

function encodeMembers(event: AuditEvent): string {
  const { responseStatus, requestObject, responseObject, annotations, impersonatedUser } = event;
  const head = JSON.stringify({
    level: event.level,
    auditID: event.auditId,
    stage: event.stage,
    requestURI: event.requestUri,
    verb: event.verb,
    user: encodeUser(event.user),
    ...(impersonatedUser === undefined ? {} : { impersonatedUser: encodeUser(impersonatedUser) }),
    ...(event.sourceIps.length === 0 ? {} : { sourceIPs: event.sourceIps }),
    ...(event.userAgent === "" ? {} : { userAgent: event.userAgent }),
    ...(event.objectRef === undefined ? {} : { objectRef: event.objectRef }),
    ...(responseStatus === undefined ? {} : { responseStatus: { metadata: {}, ...responseStatus } }),
  });
  const tail = JSON.stringify({
    requestReceivedTimestamp: microTime(event.receivedAt),
    stageTimestamp: microTime(event.stageAt),
    ...(annotations.size === 0 ? {} : { annotations: Object.fromEntries([...annotations].sort(byKey)) }),
  });
  const request = requestObject === undefined ? "" : `,"requestObject":${requestObject}`;
  const response = responseObject === undefined ? "" : `,"responseObject":${responseObject}`;
  return `${head.slice(1, -1)}${request}${response},${tail.slice(1, -1)}`;
}

function byKey([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : 1;
}

function encodeUser(user: UserInfo | undefined): object {
  if (user === undefined) return {};
  const { name, uid, groups, extra } = user;
  return {
    ...(name === "" ? {} : { username: name }),
    ...(uid === "" ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

function microTime(at: number): string {
  return new Date(at).toISOString().replace("Z", "000Z");
}

/** The format `legacy`: a line of text. */
export function formatLegacy(event: AuditEvent): string {
  const { user, impersonatedUser, objectRef, responseStatus } = event;
  const hasName = user !== undefined && user.name !== "";
  const fields = {
    id: event.auditId,
    stage: event.stage,
    ip: event.sourceIps[0] ?? "<unknown>",
    method: event.verb,
    user: hasName ? user.name : "<none>",
    groups: hasName && user.groups.length > 0 ? quoteAll(user.groups) : "<none>",
    as: impersonatedUser?.name ?? "<self>",
    asgroups: impersonatedUser === undefined ? "<lookup>" : quoteAll(impersonatedUser.groups),
    "user-agent": event.userAgent,
    namespace: objectRef?.namespace || "<none>",
    uri: event.requestUri,
  };
  const text = Object.entries(fields)
    .map(([name, value]) => `${name}=${goQuote(value)}`)
    .join(" ");
  const response = responseStatus === undefined ? "<deferred>" : String(responseStatus.code);
  return `${new Date(event.receivedAt).toISOString()} AUDIT: ${text} response="${response}"`;
}

function quoteAll(texts: readonly string[]): string {
  return texts.map((text) => goQuote(text)).join(",");
}
