import { object, optional, required, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { objectMeta } from "../meta/object-meta.ts";
import { typeMeta } from "../meta/type-meta.ts";

export const parentReference = object("networking/v1.ParentReference", {
  group: optional(1, string),
  resource: required(2, string),
  namespace: optional(3, string),
  name: required(4, string),
});
export type ParentReference = Infer<typeof parentReference>;

export const ipAddressSpec = object("networking/v1.IPAddressSpec", {
  parentRef: required(1, parentReference),
});
export type IPAddressSpec = Infer<typeof ipAddressSpec>;

export const ipAddress = object("networking/v1.IPAddress", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, ipAddressSpec),
});
export type IPAddress = Infer<typeof ipAddress>;
