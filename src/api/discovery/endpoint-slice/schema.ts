import {
  boolean,
  documentedEnum,
  int32,
  list,
  listSet,
  map,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectReference } from "../../core/references/object-reference.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const endpointConditions = object("discovery/v1.EndpointConditions", {
  ready: pointer(1, boolean),
  serving: pointer(2, boolean),
  terminating: pointer(3, boolean),
});
export type EndpointConditions = Infer<typeof endpointConditions>;

export const forZone = object("discovery/v1.ForZone", {
  name: required(1, string),
});
export type ForZone = Infer<typeof forZone>;

export const forNode = object("discovery/v1.ForNode", {
  name: required(1, string),
});
export type ForNode = Infer<typeof forNode>;

export const endpointHints = object("discovery/v1.EndpointHints", {
  forZones: optional(1, list(forZone)),
  forNodes: optional(2, list(forNode)),
});
export type EndpointHints = Infer<typeof endpointHints>;

export const endpoint = object("discovery/v1.Endpoint", {
  addresses: required(1, listSet(string)),
  conditions: optional(2, endpointConditions),
  hostname: pointer(3, string),
  targetRef: pointer(4, objectReference),
  deprecatedTopology: optional(5, map(string)),
  nodeName: pointer(6, string),
  zone: pointer(7, string),
  hints: pointer(8, endpointHints),
});
export type Endpoint = Infer<typeof endpoint>;

export const endpointPort = object(
  "discovery/v1.EndpointPort",
  {
    name: pointer(1, string),
    protocol: pointer(2, named("v1.Protocol", documentedEnum("TCP", "UDP", "SCTP"))),
    port: pointer(3, int32),
    appProtocol: pointer(4, string),
  },
  { atomic: true },
);
export type EndpointPort = Infer<typeof endpointPort>;

export const endpointSlice = object("discovery/v1.EndpointSlice", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  addressType: required(4, named("v1.AddressType", documentedEnum("IPv4", "IPv6", "FQDN"))),
  endpoints: required(2, list(endpoint)),
  ports: optional(3, list(endpointPort), { emitEmpty: true }),
});
export type EndpointSlice = Infer<typeof endpointSlice>;

/** The annotation with the time of the change of a pod or service that an update of endpoints follows. */
export const TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time";
