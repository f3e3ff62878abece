import { int32, microTime, object, optional, pointer, required, string, time } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { eventSource } from "../../core/event/schema.ts";
import { objectReference } from "../../core/references/object-reference.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const eventSeries = object("events/v1.EventSeries", {
  count: required(1, int32),
  lastObservedTime: required(2, microTime),
});
export type EventSeries = Infer<typeof eventSeries>;

export const event = object("events/v1.Event", {
  ...typeMeta,
  metadata: optional(1, objectMeta, { emitEmpty: true }),
  eventTime: required(2, microTime),
  series: pointer(3, eventSeries),
  reportingController: optional(4, string),
  reportingInstance: optional(5, string),
  action: optional(6, string),
  reason: optional(7, string),
  regarding: optional(8, objectReference),
  related: pointer(9, objectReference),
  note: optional(10, string),
  type: optional(11, string),
  deprecatedSource: optional(12, eventSource),
  deprecatedFirstTimestamp: optional(13, time),
  deprecatedLastTimestamp: optional(14, time),
  deprecatedCount: optional(15, int32),
});
export type Event = Infer<typeof event>;
