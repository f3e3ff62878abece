import { list, map, named, object, optional, pointer, quantity, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { toleration } from "../../core/pod-spec/affinity.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const overhead = object("node/v1.Overhead", {
  // Not rounded to thousandths, unlike other resource lists.
  podFixed: optional(1, named("v1.ResourceList", map(quantity))),
});
export type Overhead = Infer<typeof overhead>;

export const scheduling = object("node/v1.Scheduling", {
  nodeSelector: optional(1, map(string, { atomic: true })),
  tolerations: optional(2, list(toleration)),
});
export type Scheduling = Infer<typeof scheduling>;

export const runtimeClass = object("node/v1.RuntimeClass", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  handler: required(2, string),
  overhead: pointer(3, overhead),
  scheduling: pointer(4, scheduling),
});
export type RuntimeClass = Infer<typeof runtimeClass>;
