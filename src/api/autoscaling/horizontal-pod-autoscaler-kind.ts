import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type HorizontalPodAutoscaler, horizontalPodAutoscaler } from "./horizontal-pod-autoscaler.ts";

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
  subresources: [statusSubresource("HorizontalPodAutoscaler")],
  storageName: "horizontalpodautoscalers",
  schema: horizontalPodAutoscaler,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
