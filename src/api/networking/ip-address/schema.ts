import { object, optional, pointer, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const parentReference = object("networking/v1.ParentReference", {
  group: optional(1, string),
  resource: optional(2, string, { requiredInOpenApi: true }),
  namespace: optional(3, string),
  name: optional(4, string, { requiredInOpenApi: true }),
});
export type ParentReference = Infer<typeof parentReference>;

export const ipAddressSpec = object("networking/v1.IPAddressSpec", {
  parentRef: pointer(1, parentReference, { requiredInOpenApi: true }),
});
export type IPAddressSpec = Infer<typeof ipAddressSpec>;

export const ipAddress = object("networking/v1.IPAddress", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, ipAddressSpec),
});
export type IPAddress = Infer<typeof ipAddress>;
