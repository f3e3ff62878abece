import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { dropStatus, keepStatus, statusSubresource } from "../../strategy.ts";
import { cpuUtilization } from "../horizontal-pod-autoscaler-v1/conversion.ts";
import { autoscalerColumns } from "./columns.ts";
import { type HorizontalPodAutoscaler, type HPAScalingRules, horizontalPodAutoscaler } from "./schema.ts";
import { validateAutoscaler, validateAutoscalerStatus } from "./validation.ts";

const DOUBLE: HPAScalingRules["policies"] = [{ type: "Percent", value: 100, periodSeconds: 15 }];

/** Up fast, by four pods or to twice as many; down to the fewest, as slowly as the controller says. */
const scaleUpDefaults: HPAScalingRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [{ type: "Pods", value: 4, periodSeconds: 15 }, ...DOUBLE],
};
const scaleDownDefaults: HPAScalingRules = { selectPolicy: "Max", policies: DOUBLE };

function setHorizontalPodAutoscalerDefaults(object: HorizontalPodAutoscaler): HorizontalPodAutoscaler {
  const spec = object.spec ?? { scaleTargetRef: { kind: "", name: "" }, maxReplicas: 0 };
  const behavior = spec.behavior && {
    scaleUp: { ...scaleUpDefaults, ...spec.behavior.scaleUp },
    scaleDown: { ...scaleDownDefaults, ...spec.behavior.scaleDown },
  };
  return {
    ...object,
    spec: {
      ...spec,
      minReplicas: spec.minReplicas ?? 1,
      metrics: (spec.metrics ?? []).length === 0 ? [cpuUtilization()] : spec.metrics,
      ...(behavior === undefined ? {} : { behavior }),
    },
  };
}

/** Tolerance is a feature that is off: it goes, unless the autoscaler had one. */
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
  columns: autoscalerColumns,
  selectableFields: {},
  strategy: horizontalPodAutoscalerStrategy,
};
