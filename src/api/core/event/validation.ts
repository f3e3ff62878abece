/**
 * Rules for events. What comes through `events.svc.io` must be complete (specification 2, Event); what comes through
 * core `v1` may be of the old form, without an `eventTime`, which Kubernetes keeps accepting.
 */

import { type FieldError, invalidField, requiredField, unquotedTime } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { dns1123Subdomain, qualifiedName, validateName } from "../../meta/validation/names.ts";
import type { Event } from "./schema.ts";

const SHORT_MAX = 128;
const MESSAGE_MAX = 1024;

/** What the version of the request calls the controller. All other faults are named in the words of core `v1`. */
export type ControllerField = "reportingComponent" | "reportingController";

/** What every event must satisfy, new or changed, through either version. */
export function validateEvent(event: Event, controller: ControllerField): readonly FieldError[] {
  const { namespace = "" } = event.metadata;
  return [
    ...validateRegarding(event, namespace),
    ...(event.eventTime === undefined ? [] : validateTexts(event, controller)),
    ...validateName("namespace", namespace, dns1123Subdomain),
  ];
}

/** An event lies in the namespace of what it is about; one about the cluster lies in a namespace of the system's. */
function validateRegarding(event: Event, namespace: string): readonly FieldError[] {
  const about = event.involvedObject.namespace ?? "";
  const old = event.eventTime === undefined;
  const systems = old ? ["", "default"] : ["default", "kube-system", "svc-system"];
  const agrees = about === "" ? systems.includes(namespace) : !old || about === namespace;
  return agrees ? [] : [invalidField("involvedObject.namespace", about, "does not match event.namespace")];
}

function validateTexts(event: Event, controllerField: ControllerField): readonly FieldError[] {
  const controller = event.reportingComponent ?? "";
  return [
    ...(controller === "" ? [requiredField(controllerField)] : []),
    ...validateName(controllerField, controller, qualifiedName),
    ...shortText("reportingInstance", event.reportingInstance),
    ...shortText("action", event.action),
    ...shortText("reason", event.reason),
    ...atMost("message", event.message, MESSAGE_MAX),
  ];
}

function shortText(field: string, text = ""): readonly FieldError[] {
  return text === "" ? [requiredField(field)] : atMost(field, text, SHORT_MAX);
}

function atMost(field: string, text = "", most: number): readonly FieldError[] {
  return Buffer.byteLength(text) > most ? [invalidField(field, "", `can have at most ${most} characters`)] : [];
}

/** What a new event of `events.svc.io/v1` must have besides, in the stored form. */
export function validateCompleteEvent(event: Event): readonly FieldError[] {
  const unset = (field: string, set: boolean): readonly FieldError[] =>
    set ? [invalidField(field, "", "needs to be unset")] : [];
  const { type = "", source } = event;
  return [
    ...validateSeries(event),
    ...(event.eventTime === undefined ? [requiredField("eventTime")] : []),
    ...(["Normal", "Warning"].includes(type) ? [] : [invalidField("type", "", `has invalid value: ${type}`)]),
    ...unset("firstTimestamp", event.firstTimestamp !== undefined),
    ...unset("lastTimestamp", event.lastTimestamp !== undefined),
    ...unset("count", (event.count ?? 0) !== 0),
    ...unset("source", !!source?.component || !!source?.host),
  ];
}

function validateSeries({ series }: Event): readonly FieldError[] {
  if (series === undefined) return [];
  return [
    ...((series.count ?? 0) < 2 ? [invalidField("series.count", "", "should be at least 2")] : []),
    ...(series.lastObservedTime === undefined ? [requiredField("series.lastObservedTime")] : []),
  ];
}

const FIXED = [
  ["involvedObject", "involvedObject"],
  ["reason", "reason"],
  ["message", "message"],
  ["source", "source"],
  ["firstTimestamp", "firstTimestamp"],
  ["lastTimestamp", "lastTimestamp"],
  ["count", "count"],
  ["type", "type"],
  ["eventTime", "eventTime"],
  ["action", "action"],
  ["related", "related"],
  ["reportingComponent", "reportingController"],
  ["reportingInstance", "reportingInstance"],
] as const;

function shown(field: keyof Event, value: unknown): unknown {
  if (value === undefined) return field === "related" ? null : "";
  return field === "eventTime" ? unquotedTime(String(value)) : value;
}

/** Through `events.svc.io` only the series of an event may change. */
export function validateEventUpdate(next: Event, previous: Event): readonly FieldError[] {
  const plain = (value: unknown): unknown =>
    typeof value === "object" && value !== null && Object.keys(value).length === 0 ? undefined : value || undefined;
  return [
    ...(deepEqual(next.series, previous.series) ? [] : validateSeries(next)),
    ...FIXED.filter(([field]) => !deepEqual(plain(next[field]), plain(previous[field]))).map(([field, name]) =>
      invalidField(name, shown(field, next[field]), "field is immutable"),
    ),
  ];
}
