import { object, optional, quantity, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

export const objectFieldSelector = object(
  "core/v1.ObjectFieldSelector",
  {
    apiVersion: optional(1, string),
    fieldPath: required(2, string),
  },
  { atomic: true },
);
export type ObjectFieldSelector = Infer<typeof objectFieldSelector>;

export const resourceFieldSelector = object(
  "core/v1.ResourceFieldSelector",
  {
    containerName: optional(1, string),
    resource: required(2, string),
    divisor: optional(3, quantity),
  },
  { atomic: true },
);
export type ResourceFieldSelector = Infer<typeof resourceFieldSelector>;
