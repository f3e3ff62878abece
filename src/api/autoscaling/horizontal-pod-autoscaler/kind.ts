import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { horizontalPodAutoscalerColumns } from "./columns.ts";
import { type HorizontalPodAutoscaler, horizontalPodAutoscaler } from "./schema.ts";
import { horizontalPodAutoscalerStrategy } from "./strategy.ts";
import { validateAutoscalerStatus } from "./validation.ts";

export const horizontalPodAutoscalerKind: Kind<HorizontalPodAutoscaler> = {
  group: "autoscaling",
  version: "v2",
  kind: "HorizontalPodAutoscaler",
  listKind: "HorizontalPodAutoscalerList",
  plural: "horizontalpodautoscalers",
  singular: "horizontalpodautoscaler",
  shortNames: ["hpa"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("HorizontalPodAutoscaler", { validateUpdate: validateAutoscalerStatus })],
  storageName: "horizontalpodautoscalers",
  schema: horizontalPodAutoscaler,
  columns: horizontalPodAutoscalerColumns,
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: horizontalPodAutoscalerStrategy,
};
