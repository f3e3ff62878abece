import {
  documentedEnum,
  int32,
  list,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { objectReference } from "../references/object-reference.ts";

export const endpointAddress = object(
  "core/v1.EndpointAddress",
  {
    ip: required(1, string),
    hostname: optional(3, string),
    nodeName: pointer(4, string),
    targetRef: pointer(2, objectReference),
  },
  { atomic: true },
);
export type EndpointAddress = Infer<typeof endpointAddress>;

export const endpointPort = object(
  "core/v1.EndpointPort",
  {
    name: optional(1, string),
    port: required(2, int32),
    protocol: optional(3, named("v1.Protocol", documentedEnum("TCP", "UDP", "SCTP"))),
    appProtocol: pointer(4, string),
  },
  { atomic: true },
);
export type EndpointPort = Infer<typeof endpointPort>;

export const endpointSubset = object("core/v1.EndpointSubset", {
  addresses: optional(1, list(endpointAddress)),
  notReadyAddresses: optional(2, list(endpointAddress)),
  ports: optional(3, list(endpointPort)),
});
export type EndpointSubset = Infer<typeof endpointSubset>;

export const endpoints = object("core/v1.Endpoints", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  subsets: optional(2, list(endpointSubset)),
});
export type Endpoints = Infer<typeof endpoints>;
