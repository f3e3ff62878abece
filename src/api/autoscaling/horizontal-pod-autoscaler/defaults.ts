import { cpuUtilizationMetric } from "../horizontal-pod-autoscaler-v1/conversion.ts";
import type { HorizontalPodAutoscaler, HPAScalingRules } from "./schema.ts";

const DOUBLE: HPAScalingRules["policies"] = [{ type: "Percent", value: 100, periodSeconds: 15 }];

/**
 * Scale up without stabilization, by four pods or by 100 %; scale down to the minimum, with the controller's
 * stabilization window.
 */
const scaleUpDefaults: HPAScalingRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [{ type: "Pods", value: 4, periodSeconds: 15 }, ...DOUBLE],
};

const scaleDownDefaults: HPAScalingRules = { selectPolicy: "Max", policies: DOUBLE };

export function setHorizontalPodAutoscalerDefaults(object: HorizontalPodAutoscaler): HorizontalPodAutoscaler {
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
      metrics: (spec.metrics ?? []).length === 0 ? [cpuUtilizationMetric()] : spec.metrics,
      ...(behavior === undefined ? {} : { behavior }),
    },
  };
}
