/** `autoscaling/v1` HorizontalPodAutoscaler. All rules are those of `autoscaling/v2`. */
import { type ApiObject, allVerbs, type Kind } from "../../kind.ts";
import { replaceStatus, statusSubresource } from "../../strategy.ts";
import { horizontalPodAutoscalerColumns } from "../horizontal-pod-autoscaler/columns.ts";
import { horizontalPodAutoscalerKind } from "../horizontal-pod-autoscaler/kind.ts";
import type { HorizontalPodAutoscaler as HorizontalPodAutoscalerV2 } from "../horizontal-pod-autoscaler/schema.ts";
import { validateAutoscalerStatus } from "../horizontal-pod-autoscaler/validation.ts";
import { fromV2, toV2 } from "./conversion.ts";
import { type HorizontalPodAutoscaler, horizontalPodAutoscaler } from "./schema.ts";
import { convertThroughV2, horizontalPodAutoscalerV1Strategy } from "./strategy.ts";

export const horizontalPodAutoscalerV1Kind: Kind<HorizontalPodAutoscaler> = {
  group: "autoscaling",
  version: "v1",
  kind: "HorizontalPodAutoscaler",
  listKind: "HorizontalPodAutoscalerList",
  plural: "horizontalpodautoscalers",
  singular: "horizontalpodautoscaler",
  shortNames: ["hpa"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    statusSubresource("HorizontalPodAutoscaler", {
      prepareForUpdate: convertThroughV2(replaceStatus),
      validateUpdate: (next) => validateAutoscalerStatus(toV2(next)),
    }),
  ],
  storageName: "horizontalpodautoscalers",
  schema: horizontalPodAutoscaler,
  columns: horizontalPodAutoscalerColumns.map((column) => ({
    ...column,
    cell: (object, now) => column.cell(toV2(object), now),
  })),
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: horizontalPodAutoscalerV1Strategy,
  conversion: {
    storageKind: horizontalPodAutoscalerKind,
    toStorage: toV2,
    fromStorage: (object: ApiObject) => fromV2(object as HorizontalPodAutoscalerV2),
  },
};
