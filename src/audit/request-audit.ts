/** What is recorded of one request while it is served. */
import type { ApiObject } from "../api/kind.ts";
import type { UserInfo } from "../auth/user.ts";
import { andThen, type MaybePromise } from "../std/async/maybe-promise.ts";
import { type Layer, SLOW_MS, type Trace } from "../tracing/span.ts";
import type { AuditEvent, ObjectReference, ResponseStatus } from "./event.ts";
import { type MeasuredFilter, RequestLatencies } from "./latencies.ts";
import { type AuditDecision, LEVELS, type Level, type Stage } from "./policy.ts";

export type RequestMetadata = Pick<
  AuditEvent,
  "auditId" | "requestUri" | "verb" | "user" | "sourceIps" | "userAgent" | "objectRef" | "receivedAt"
>;

type Metadata = ApiObject["metadata"];

export class RequestAudit {
  readonly decision: AuditDecision;
  readonly #request: RequestMetadata;
  readonly #annotations: () => ReadonlyMap<string, string>;
  #impersonatedUser: UserInfo | undefined;
  #objectRef: ObjectReference | undefined;
  #requestObject: string | undefined;
  #status: ResponseStatus | undefined;
  #readResponse: (() => MaybePromise<string | undefined>) | undefined;
  #responseObject: string | undefined;
  readonly #latencies = new RequestLatencies();

  /** `annotations`: those at the time of an event. */
  constructor(decision: AuditDecision, request: RequestMetadata, annotations: () => ReadonlyMap<string, string>) {
    this.decision = decision;
    this.#annotations = annotations;
    this.#request = request;
    this.#objectRef = request.objectRef;
  }

  /** Milliseconds since 1970. */
  get receivedAt(): number {
    return this.#request.receivedAt;
  }

  #reaches(level: Level): boolean {
    return LEVELS.indexOf(this.decision.level) >= LEVELS.indexOf(level);
  }

  /** Whether the body of the response is recorded. */
  get recordsResponse(): boolean {
    return this.#reaches("RequestResponse");
  }

  impersonate(user: UserInfo): void {
    this.#impersonatedUser = user;
  }

  /** The object of a request: names what the path does not, and is recorded if the level says so. */
  setRequestObject(metadata: Metadata, encode: () => string): void {
    const { objectRef } = this.#request;
    this.#objectRef = {
      resource: objectRef?.resource,
      namespace: objectRef?.namespace || metadata?.namespace || undefined,
      name: objectRef?.name || metadata?.name || undefined,
      uid: metadata?.uid || undefined,
      apiGroup: objectRef?.apiGroup,
      apiVersion: objectRef?.apiVersion,
      resourceVersion: metadata?.resourceVersion || undefined,
      subresource: objectRef?.subresource,
    };
    this.setRequestBody(encode);
  }

  /** JSON that is no object of its own: patches and options. */
  setRequestBody(encode: () => string): void {
    if (this.#reaches("Request")) this.#requestObject = encode().trimEnd();
  }

  setStatus(status: ResponseStatus): void {
    this.#status = status;
  }

  /** The time in a filter, in milliseconds. */
  setLatency(filter: MeasuredFilter, milliseconds: number): void {
    this.#latencies[filter] = milliseconds;
  }

  /** The trace of the handler, which gets the time in the layers below. */
  setTrace(trace: Trace): void {
    this.#latencies.measure(trace);
  }

  /** The time in a layer after the handler, in milliseconds. */
  addLatency(layer: Layer, milliseconds: number): void {
    this.#latencies.addLatency(layer, milliseconds);
  }

  /** Reads the JSON of the response when the event is written. */
  setResponse(read: () => MaybePromise<string | undefined>): void {
    if (this.recordsResponse) this.#readResponse = read;
  }

  /** The event of a stage, unless the policy omits it. `code`: of the response, if there is one already. */
  event(stage: Stage, at: number, code?: number): MaybePromise<AuditEvent | undefined> {
    const { omitStages, level } = this.decision;
    if (omitStages.has(stage)) return undefined;
    if (stage === "RequestReceived") return { ...this.#request, level, stage, stageAt: at, annotations: NONE };
    if (this.#readResponse === undefined || this.#responseObject !== undefined) return this.#makeEvent(stage, at, code);
    return andThen(this.#readResponse(), (text) => {
      this.#responseObject = text?.trimEnd();
      return this.#makeEvent(stage, at, code);
    });
  }

  #makeEvent(stage: Stage, at: number, code: number | undefined): AuditEvent {
    return {
      ...this.#request,
      level: this.decision.level,
      stage,
      stageAt: at,
      impersonatedUser: this.#impersonatedUser,
      objectRef: this.#objectRef,
      responseStatus: code === undefined ? undefined : { ...this.#status, code },
      requestObject: this.#requestObject,
      responseObject: this.#responseObject,
      annotations: stage === "ResponseComplete" ? this.#annotationsWithLatencies(at) : this.#annotations(),
    };
  }

  #annotationsWithLatencies(at: number): ReadonlyMap<string, string> {
    const ms = at - this.receivedAt;
    return ms > SLOW_MS ? new Map([...this.#annotations(), ...this.#latencies.annotations(ms)]) : this.#annotations();
  }
}

const NONE: ReadonlyMap<string, string> = new Map();
