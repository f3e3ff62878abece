import { named, object, optional, pointer, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

export const objectReference = object(
  "core/v1.ObjectReference",
  {
    kind: optional(1, string),
    namespace: optional(2, string),
    name: optional(3, string),
    uid: optional(4, named("types.UID", string)),
    apiVersion: optional(5, string),
    resourceVersion: optional(6, string),
    fieldPath: optional(7, string),
  },
  { atomic: true },
);
export type ObjectReference = Infer<typeof objectReference>;

export const localObjectReference = object(
  "core/v1.LocalObjectReference",
  {
    name: optional(1, string, { default: "" }),
  },
  { atomic: true },
);
export type LocalObjectReference = Infer<typeof localObjectReference>;

export const typedLocalObjectReference = object(
  "core/v1.TypedLocalObjectReference",
  {
    apiGroup: pointer(1, string, { emitEmpty: true }),
    kind: required(2, string),
    name: required(3, string),
  },
  { atomic: true },
);
export type TypedLocalObjectReference = Infer<typeof typedLocalObjectReference>;

export const typedObjectReference = object("core/v1.TypedObjectReference", {
  apiGroup: pointer(1, string, { emitEmpty: true }),
  kind: required(2, string),
  name: required(3, string),
  namespace: pointer(4, string, {
    featureGate: "CrossNamespaceVolumeDataSource",
  }),
});
export type TypedObjectReference = Infer<typeof typedObjectReference>;

export const secretReference = object(
  "core/v1.SecretReference",
  {
    name: optional(1, string),
    namespace: optional(2, string),
  },
  { atomic: true },
);
export type SecretReference = Infer<typeof secretReference>;
