import { duration, list, map, named, object, optional, quantity, required, string, time } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { objectMeta } from "../meta/object-meta.ts";
import { typeMeta } from "../meta/type-meta.ts";

/** By resource: `cpu`, `memory`. Not rounded to thousandths, unlike other resource lists. */
const usage = named("v1.ResourceList", map(quantity));
export type ResourceUsage = Infer<typeof usage>;

export const nodeMetrics = object("metrics/v1beta1.NodeMetrics", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  timestamp: required(2, time),
  window: required(3, duration),
  usage: required(4, usage),
});
export type NodeMetrics = Infer<typeof nodeMetrics>;

export const containerMetrics = object("metrics/v1beta1.ContainerMetrics", {
  name: required(1, string),
  usage: required(2, usage),
});
export type ContainerMetrics = Infer<typeof containerMetrics>;

export const podMetrics = object("metrics/v1beta1.PodMetrics", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  timestamp: required(2, time),
  window: required(3, duration),
  containers: required(4, list(containerMetrics)),
});
export type PodMetrics = Infer<typeof podMetrics>;
