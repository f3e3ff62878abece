/**
 * Rules for events. `events.svc.io/v1` requires complete events; core `v1` also accepts events without `eventTime`, as
 * Kubernetes does.
 */

import type { Schema } from "../../../schema/schema.ts";
import {
  type BadValue,
  type FieldError,
  invalidField,
  requiredField,
  unquotedTime,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { dns1123Subdomain, qualifiedName, validateName } from "../../meta/validation/names.ts";
import { objectReference } from "../references/object-reference.ts";
import { type Event, eventSource } from "./schema.ts";

/** In characters, as the API's documentation and the error say; Kubernetes 1.33 counts bytes and refuses more. */
const SHORT_MAX = 128;
/** In bytes, although the error says characters, as in Kubernetes. */
const MESSAGE_MAX = 1024;

/** The name of the controller field in the version of the request. Other errors use core `v1` field names. */
export type ControllerField = "reportingComponent" | "reportingController";

/** The rules for new and updated events of both versions. */
export function validateEvent(event: Event, controller: ControllerField): readonly FieldError[] {
  const { namespace = "" } = event.metadata;
  return [
    ...validateRegarding(event, namespace),
    ...(event.eventTime === undefined ? [] : validateTexts(event, controller)),
    ...validateName("namespace", namespace, dns1123Subdomain),
  ];
}

/** The event's namespace is that of its object; events of cluster-scoped objects are in `default` or `kube-system`. */
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
    ...validateShortText("reportingInstance", event.reportingInstance),
    ...validateShortText("action", event.action),
    ...validateShortText("reason", event.reason),
    ...(Buffer.byteLength(event.message ?? "") > MESSAGE_MAX ? [tooLong("message", MESSAGE_MAX)] : []),
  ];
}

function validateShortText(field: string, text = ""): readonly FieldError[] {
  if (text === "") return [requiredField(field)];
  return hasMoreCharacters(text, SHORT_MAX) ? [tooLong(field, SHORT_MAX)] : [];
}

/** A character has one or two UTF-16 units. */
function hasMoreCharacters(text: string, max: number): boolean {
  return text.length > max && (text.length > 2 * max || [...text].length > max);
}

function tooLong(field: string, max: number): FieldError {
  return invalidField(field, "", `can have at most ${max} characters`);
}

/** Additional rules for new events of `events.svc.io/v1`, in the stored version's fields. */
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
  // Kubernetes checks the reason twice.
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

const STRUCTS: Partial<Record<keyof Event, Schema>> = {
  metadata: objectMeta,
  involvedObject: objectReference,
  related: objectReference,
  source: eventSource,
};

function shownValue(field: keyof Event, value: unknown): BadValue {
  if (value === undefined) return field === "related" ? null : "";
  if (field === "eventTime") return unquotedTime(String(value));
  const schema = STRUCTS[field];
  return schema === undefined ? (value as string | number) : goStruct(schema, value);
}

/** Updates through `events.svc.io` may change only the series. */
export function validateEventUpdate(next: Event, previous: Event): readonly FieldError[] {
  const plain = (value: unknown): unknown =>
    typeof value === "object" && value !== null && Object.keys(value).length === 0 ? undefined : value || undefined;
  return [
    ...(deepEqual(next.series, previous.series) ? [] : validateSeries(next)),
    ...FIXED.filter(([field]) => !deepEqual(plain(next[field]), plain(previous[field]))).map(([field, name]) =>
      invalidField(name, shownValue(field, next[field]), "field is immutable"),
    ),
  ];
}
