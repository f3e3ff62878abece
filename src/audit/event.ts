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
  const { impersonatedUser, objectRef, responseStatus, requestObject, responseObject, annotations } = event;
  let text = `"level":"${event.level}","auditID":${quote(event.auditId)},"stage":"${event.stage}"`;
  text += `,"requestURI":${quote(event.requestUri)},"verb":${quote(event.verb)},"user":${encodeUser(event.user)}`;
  if (impersonatedUser !== undefined) text += `,"impersonatedUser":${encodeUser(impersonatedUser)}`;
  if (event.sourceIps.length > 0) text += `,"sourceIPs":${JSON.stringify(event.sourceIps)}`;
  if (event.userAgent !== "") text += `,"userAgent":${quote(event.userAgent)}`;
  if (objectRef !== undefined) text += `,"objectRef":${JSON.stringify(objectRef)}`;
  if (responseStatus !== undefined) text += `,"responseStatus":${encodeStatus(responseStatus)}`;
  if (requestObject !== undefined) text += `,"requestObject":${requestObject}`;
  if (responseObject !== undefined) text += `,"responseObject":${responseObject}`;
  text += `,"requestReceivedTimestamp":"${microTime(event.receivedAt)}","stageTimestamp":"${microTime(event.stageAt)}"`;
  if (annotations.size > 0) text += `,"annotations":${encodeAnnotations(annotations)}`;
  return text;
}

const quote: (text: string) => string = JSON.stringify;

function encodeStatus(status: ResponseStatus): string {
  if (Object.keys(status).length === 1) return `{"metadata":{},"code":${status.code}}`;
  return JSON.stringify({ metadata: {}, ...status });
}

function encodeAnnotations(annotations: ReadonlyMap<string, string>): string {
  const keys = [...annotations.keys()].sort();
  return `{${keys.map((key) => `${quote(key)}:${quote(annotations.get(key) ?? "")}`).join(",")}}`;
}

/** By object: an authenticator returns the same one for the same credentials while it caches them. */
const encodedUsers = new WeakMap<UserInfo, string>();

function encodeUser(user: UserInfo | undefined): string {
  if (user === undefined) return "{}";
  let text = encodedUsers.get(user);
  if (text === undefined) {
    const { name, uid, groups, extra } = user;
    text = JSON.stringify({
      ...(name === "" ? {} : { username: name }),
      ...(uid === "" ? {} : { uid }),
      ...(groups.length === 0 ? {} : { groups }),
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
    });
    encodedUsers.set(user, text);
  }
  return text;
}

/** The last time that was formatted: the events of a millisecond have the same. */
const latest = { at: Number.NaN, text: "" };

function microTime(at: number): string {
  if (at !== latest.at) {
    latest.at = at;
    latest.text = new Date(at).toISOString().replace("Z", "000Z");
  }
  return latest.text;
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
