import type { Strategy } from "../../kind.ts";
import type { HorizontalPodAutoscaler as HorizontalPodAutoscalerV2 } from "../horizontal-pod-autoscaler/schema.ts";
import { horizontalPodAutoscalerStrategy } from "../horizontal-pod-autoscaler/strategy.ts";
import { fromV2, toV2 } from "./conversion.ts";
import type { HorizontalPodAutoscaler } from "./schema.ts";

/** Applies a step of version 2; the fields that version 1 lacks are kept in annotations. */
export function convertThroughV2(
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

export const horizontalPodAutoscalerV1Strategy: Strategy<HorizontalPodAutoscaler> = {
  setDefaults,
  prepareForCreate: (object, now) => {
    const converted = toV2(object);
    return fromV2(prepareForCreate?.(converted, now) ?? converted);
  },
  prepareForUpdate: (next, previous, now) =>
    convertThroughV2((a, b) => prepareForUpdate?.(a, b, now) ?? a)(next, previous),
  validate: (object, previous, features) =>
    horizontalPodAutoscalerStrategy.validate?.(toV2(object), previous && toV2(previous), features) ?? [],
};
