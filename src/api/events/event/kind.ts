/** `events.svc.io/v1` Event: the objects of core `v1` Event with other field names and stricter rules. */
import { eventColumns } from "../../core/event/columns.ts";
import { eventKind } from "../../core/event/kind.ts";
import type { Event as CoreEvent } from "../../core/event/schema.ts";
import { validateCompleteEvent, validateEvent, validateEventUpdate } from "../../core/event/validation.ts";
import { type ApiObject, allVerbs, type Column, type Kind } from "../../kind.ts";
import { dns1123Subdomain } from "../../meta/validation/names.ts";
import { fromCoreEvent, toCoreEvent } from "./conversion.ts";
import { type Event, event } from "./schema.ts";

const core = toCoreEvent;

const columns: readonly Column<Event>[] = eventColumns.map((column) => ({
  ...column,
  cell: (object, now) => column.cell(core(object), now),
}));

const { compareRows: _, ...shared } = eventKind;

export const eventsV1EventKind: Kind<Event> = {
  ...shared,
  subresources: [],
  group: "events.svc.io",
  nameFormat: dns1123Subdomain,
  allowsAnyFinalizer: false,
  schema: event,
  columns,
  rowConditions: () => [],
  verbs: allVerbs,
  selectableFields: {
    "regarding.kind": (object) => object.regarding?.kind ?? "",
    "regarding.namespace": (object) => object.regarding?.namespace ?? "",
    "regarding.name": (object) => object.regarding?.name ?? "",
    "regarding.uid": (object) => object.regarding?.uid ?? "",
    "regarding.apiVersion": (object) => object.regarding?.apiVersion ?? "",
    "regarding.resourceVersion": (object) => object.regarding?.resourceVersion ?? "",
    "regarding.fieldPath": (object) => object.regarding?.fieldPath ?? "",
    reason: (object) => object.reason ?? "",
    reportingController: (object) => object.reportingController ?? "",
    type: (object) => object.type ?? "",
  },
  updateChecks: ["metadataUpdate", "spec"],
  strategy: {
    validate: (object, previous) => [
      ...validateEvent(core(object), "reportingController"),
      ...(previous === undefined ? validateCompleteEvent(core(object)) : []),
    ],
    validateUpdate: (next, previous) => validateEventUpdate(core(next), core(previous)),
    allowCreateOnUpdate: true,
    ttlSeconds: (_, { eventTtlSeconds }) => eventTtlSeconds,
  },
  conversion: {
    storageKind: eventKind,
    toStorage: core,
    fromStorage: (object: ApiObject) => fromCoreEvent(object as CoreEvent),
  },
};
