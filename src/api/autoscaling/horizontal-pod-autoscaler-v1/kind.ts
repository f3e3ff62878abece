/** `autoscaling/v1` HorizontalPodAutoscaler. All rules are those of `autoscaling/v2`. */
import { type ApiObject, allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { replaceStatus, statusSubresource } from "../../strategy.ts";
import { autoscalerColumns } from "../horizontal-pod-autoscaler/columns.ts";
import { horizontalPodAutoscalerKind } from "../horizontal-pod-autoscaler/kind.ts";
import type { HorizontalPodAutoscaler as HorizontalPodAutoscalerV2 } from "../horizontal-pod-autoscaler/schema.ts";
import { horizontalPodAutoscalerStrategy } from "../horizontal-pod-autoscaler/strategy.ts";
import { validateAutoscalerStatus } from "../horizontal-pod-autoscaler/validation.ts";
import { fromV2, toV2 } from "./conversion.ts";
import { type HorizontalPodAutoscaler, horizontalPodAutoscaler } from "./schema.ts";

/** Applies a step of version 2; the fields that version 1 lacks are kept in annotations. */
function convertThroughV2(
  change: (next: HorizontalPodAutoscalerV2, previous: HorizontalPodAutoscalerV2) => HorizontalPodAutoscalerV2,
) {
  return (next: HorizontalPodAutoscaler, previous: HorizontalPodAutoscaler): HorizontalPodAutoscaler =>
    fromV2(change(toV2(next), toV2(previous)));
}

function setDefaults(object: HorizontalPodAutoscaler): HorizontalPodAutoscaler {
  const converted = toV2(object);
  const spec = converted.spec && { ...converted.spec, minReplicas: converted.spec.minReplicas ?? 1 };
  return fromV2(spec === undefined ? converted : { ...converted, spec });
}

const { prepareForCreate, prepareForUpdate } = horizontalPodAutoscalerStrategy;

const horizontalPodAutoscalerV1Strategy: Strategy<HorizontalPodAutoscaler> = {
  setDefaults,
  prepareForCreate: (object, now) => {
    const converted = toV2(object);
    return fromV2(prepareForCreate?.(converted, now) ?? converted);
  },
  prepareForUpdate: (next, previous, now) =>
    convertThroughV2((a, b) => prepareForUpdate?.(a, b, now) ?? a)(next, previous),
  validate: (object, previous) =>
    horizontalPodAutoscalerStrategy.validate?.(toV2(object), previous && toV2(previous)) ?? [],
};

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
  columns: autoscalerColumns.map((column) => ({ ...column, cell: (object, now) => column.cell(toV2(object), now) })),
  selectableFields: {},
  strategy: horizontalPodAutoscalerV1Strategy,
  conversion: {
    storageKind: horizontalPodAutoscalerKind,
    toStorage: toV2,
    fromStorage: (object: ApiObject) => fromV2(object as HorizontalPodAutoscalerV2),
  },
};
