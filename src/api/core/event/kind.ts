import { allVerbs, type Kind } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { eventColumns } from "./columns.ts";
import { type Event, event } from "./schema.ts";
import { validateEvent } from "./validation.ts";

export const eventKind: Kind<Event> = {
  group: "",
  version: "v1",
  kind: "Event",
  listKind: "EventList",
  plural: "events",
  singular: "event",
  shortNames: ["ev"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "events",
  schema: event,
  columns: eventColumns,
  selectableFields: {
    "involvedObject.kind": (object) => object.involvedObject.kind ?? "",
    "involvedObject.namespace": (object) => object.involvedObject.namespace ?? "",
    "involvedObject.name": (object) => object.involvedObject.name ?? "",
    "involvedObject.uid": (object) => object.involvedObject.uid ?? "",
    "involvedObject.apiVersion": (object) => object.involvedObject.apiVersion ?? "",
    "involvedObject.resourceVersion": (object) => object.involvedObject.resourceVersion ?? "",
    "involvedObject.fieldPath": (object) => object.involvedObject.fieldPath ?? "",
    reason: (object) => object.reason ?? "",
    reportingComponent: (object) => object.reportingComponent ?? "",
    source: (object) => object.source?.component || object.reportingComponent || "",
    type: (object) => object.type ?? "",
  },
  // Event names need not be DNS subdomains, nor their finalizers have a domain.
  nameFormat: pathSegment,
  allowsAnyFinalizer: true,
  updateChecks: ["spec"],
  strategy: {
    validate: (object) => validateEvent(object, "reportingComponent"),
    allowCreateOnUpdate: true,
    ttlSeconds: (_, { eventTtlSeconds }) => eventTtlSeconds,
  },
};
