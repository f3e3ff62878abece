import { int32, microTime, object, optional, pointer, required, string, time } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { objectReference } from "../references/object-reference.ts";

export const eventSource = object("core/v1.EventSource", {
  component: optional(1, string),
  host: optional(2, string),
});
export type EventSource = Infer<typeof eventSource>;

export const eventSeries = object("core/v1.EventSeries", {
  count: optional(1, int32),
  lastObservedTime: optional(2, microTime),
});
export type EventSeries = Infer<typeof eventSeries>;

export const event = object("core/v1.Event", {
  ...typeMeta,
  metadata: required(1, objectMeta),
  involvedObject: required(2, objectReference),
  reason: optional(3, string),
  message: optional(4, string),
  source: optional(5, eventSource),
  firstTimestamp: optional(6, time),
  lastTimestamp: optional(7, time),
  count: optional(8, int32),
  type: optional(9, string),
  eventTime: optional(10, microTime),
  series: pointer(11, eventSeries),
  action: optional(12, string),
  related: pointer(13, objectReference),
  reportingComponent: optional(14, string, { emitEmpty: true }),
  reportingInstance: optional(15, string, { emitEmpty: true }),
});
export type Event = Infer<typeof event>;
