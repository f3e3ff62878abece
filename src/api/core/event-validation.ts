/**
 * Rules for events. What comes through `events.svc.io` must be complete (specification 2, Event); what comes through
 * core `v1` may be of the old form, without an `eventTime`, which Kubernetes keeps accepting.
 */
import { deepEqual } from "../../schema/equal.ts";
import { type FieldError, invalidField, requiredField } from "../../schema/field-error.ts";
import { qualifiedName } from "../meta/names.ts";
import type { Event } from "./event.ts";

const SHORT_MAX = 128;
const MESSAGE_MAX = 1024;
const MISMATCH = "does not match event.namespace";

/** What the two versions call the same field, for the paths of errors. */
export interface EventFieldNames {
  readonly regarding: string;
  readonly controller: string;
  readonly message: string;
}

const coreNames: EventFieldNames = {
  regarding: "involvedObject",
  controller: "reportingComponent",
  message: "message",
};
export const eventsNames: EventFieldNames = {
  regarding: "regarding",
  controller: "reportingController",
  message: "note",
};

/** An event of core `v1`. */
export function validateCoreEvent(event: Event): readonly FieldError[] {
  const namespace = event.metadata.namespace ?? "";
  const about = event.involvedObject.namespace ?? "";
  const field = `${coreNames.regarding}.namespace`;
  if (event.eventTime === undefined) {
    const agrees = about === "" ? namespace === "" || namespace === "default" : about === namespace;
    return agrees ? [] : [invalidField(field, about, MISMATCH)];
  }
  const outside = about === "" && !["default", "kube-system", "svc-system"].includes(namespace);
  return [...(outside ? [invalidField(field, about, MISMATCH)] : []), ...validateTexts(event, coreNames)];
}

/** A new event of `events.svc.io/v1`, in the stored form. */
export function validateNewEvent(event: Event): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (event.eventTime === undefined) errors.push(requiredField("eventTime"));
  if (event.series !== undefined) {
    if ((event.series.count ?? 0) < 2) errors.push(invalidField("series.count", "", "should be at least 2"));
    if (event.series.lastObservedTime === undefined) errors.push(requiredField("series.lastObservedTime"));
  }
  errors.push(...validateTexts(event, eventsNames));
  if (event.type !== "Normal" && event.type !== "Warning") {
    errors.push(invalidField("type", event.type ?? "", `has invalid value: ${event.type ?? ""}`));
  }
  for (const field of ["firstTimestamp", "lastTimestamp", "count"] as const) {
    if (event[field] === undefined || event[field] === 0) continue;
    errors.push(invalidField(field, event[field], "needs to be unset"));
  }
  return errors;
}

function validateTexts(event: Event, names: EventFieldNames): readonly FieldError[] {
  const controller = event.reportingComponent ?? "";
  return [
    ...(controller === "" ? [requiredField(names.controller)] : []),
    ...qualifiedName(controller).map((problem) => invalidField(names.controller, controller, problem)),
    ...shortText("reportingInstance", event.reportingInstance),
    ...shortText("action", event.action),
    ...shortText("reason", event.reason),
    ...((event.message ?? "").length > MESSAGE_MAX
      ? [invalidField(names.message, event.message, `can have at most ${MESSAGE_MAX} characters`)]
      : []),
  ];
}

function shortText(field: string, text = ""): readonly FieldError[] {
  if (text === "") return [requiredField(field)];
  return text.length > SHORT_MAX ? [invalidField(field, text, `can have at most ${SHORT_MAX} characters`)] : [];
}

/** Through `events.svc.io` only the series of an event may change. */
export function validateEventUpdate(next: Event, previous: Event, names: EventFieldNames): readonly FieldError[] {
  const fields: readonly (readonly [keyof Event, string])[] = [
    ["involvedObject", names.regarding],
    ["reason", "reason"],
    ["message", names.message],
    ["source", "source"],
    ["firstTimestamp", "firstTimestamp"],
    ["lastTimestamp", "lastTimestamp"],
    ["count", "count"],
    ["type", "type"],
    ["eventTime", "eventTime"],
    ["action", "action"],
    ["related", "related"],
    ["reportingComponent", names.controller],
    ["reportingInstance", "reportingInstance"],
  ];
  return fields
    .filter(([field]) => !deepEqual(next[field] ?? "", previous[field] ?? ""))
    .map(([field, name]) => invalidField(name, next[field], "field is immutable"));
}
