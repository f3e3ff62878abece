import { boolean, inline, object, pointer, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { localObjectReference } from "./object-reference.ts";

export const configMapKeySelector = object(
  "core/v1.ConfigMapKeySelector",
  {
    localObjectReference: inline(1, localObjectReference),
    key: required(2, string),
    optional: pointer(3, boolean),
  },
  { atomic: true },
);
export type ConfigMapKeySelector = Infer<typeof configMapKeySelector>;

export const secretKeySelector = object(
  "core/v1.SecretKeySelector",
  {
    localObjectReference: inline(1, localObjectReference),
    key: required(2, string),
    optional: pointer(3, boolean),
  },
  { atomic: true },
);
export type SecretKeySelector = Infer<typeof secretKeySelector>;
