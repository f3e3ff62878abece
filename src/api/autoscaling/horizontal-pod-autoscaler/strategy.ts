import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus } from "../../strategy.ts";
import { setHorizontalPodAutoscalerDefaults } from "./defaults.ts";
import type { HorizontalPodAutoscaler } from "./schema.ts";
import { validateAutoscaler } from "./validation.ts";

/** Drops `tolerance`, whose feature is off by default, unless the stored autoscaler has it. */
function dropDisabledFields(
  next: HorizontalPodAutoscaler,
  previous: HorizontalPodAutoscaler | undefined,
): HorizontalPodAutoscaler {
  const { scaleUp, scaleDown } = previous?.spec?.behavior ?? {};
  const had = scaleUp?.tolerance !== undefined || scaleDown?.tolerance !== undefined;
  if (had || next.spec?.behavior === undefined) return next;
  const rules = Object.entries(next.spec.behavior).map(([direction, sent]) => {
    const { tolerance: _, ...rest } = sent ?? {};
    return [direction, rest] as const;
  });
  return { ...next, spec: { ...next.spec, behavior: Object.fromEntries(rules) } };
}

export const horizontalPodAutoscalerStrategy: Strategy<HorizontalPodAutoscaler> = {
  setDefaults: setHorizontalPodAutoscalerDefaults,
  prepareForCreate: (object) => dropDisabledFields(dropStatus(object), undefined),
  prepareForUpdate: (next, previous) => dropDisabledFields(keepStatus(next, previous), previous),
  validate: validateAutoscaler,
};
