import type { Event as CoreEvent } from "../../core/event/schema.ts";
import type { Event } from "./schema.ts";

export function toCoreEvent(object: Event): CoreEvent {
  const {
    apiVersion: _,
    regarding,
    note,
    reportingController,
    deprecatedSource,
    deprecatedFirstTimestamp,
    deprecatedLastTimestamp,
    deprecatedCount,
    ...same
  } = object;
  return dropUndefined<CoreEvent>({
    ...same,
    metadata: object.metadata ?? {},
    involvedObject: regarding ?? {},
    message: note,
    reportingComponent: reportingController,
    source: deprecatedSource,
    firstTimestamp: deprecatedFirstTimestamp,
    lastTimestamp: deprecatedLastTimestamp,
    count: deprecatedCount,
  });
}

export function fromCoreEvent(object: CoreEvent): Event {
  const {
    apiVersion: _,
    involvedObject,
    message,
    reportingComponent,
    source,
    firstTimestamp,
    lastTimestamp,
    count,
    ...same
  } = object;
  return dropUndefined<Event>({
    ...same,
    // Events of core v1 may lack eventTime, which v1 requires: Kubernetes writes null.
    eventTime: object.eventTime,
    regarding: involvedObject,
    note: message,
    reportingController: reportingComponent,
    deprecatedSource: source,
    deprecatedFirstTimestamp: firstTimestamp,
    deprecatedLastTimestamp: lastTimestamp,
    deprecatedCount: count,
  });
}

/** Drops undefined fields, so that equal events compare as equal. */
function dropUndefined<T>(members: Partial<Record<keyof T, unknown>>): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
