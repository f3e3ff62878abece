import { setTemplateDefaults, specOf } from "../workload/strategy.ts";
import type { DaemonSet, DaemonSetUpdateStrategy } from "./schema.ts";

export function setDaemonSetDefaults(object: DaemonSet): DaemonSet {
  const spec = specOf(object);
  return {
    ...object,
    spec: {
      ...spec,
      template: setTemplateDefaults(spec.template),
      updateStrategy: setUpdateStrategyDefaults(spec.updateStrategy ?? {}),
      revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
    },
  };
}

function setUpdateStrategyDefaults(strategy: DaemonSetUpdateStrategy): DaemonSetUpdateStrategy {
  const type = strategy.type || "RollingUpdate";
  const isRolling = type === "RollingUpdate";
  if (!isRolling && strategy.rollingUpdate === undefined) return strategy;
  // Kubernetes' internal type has numbers where the version has optional ones.
  const { maxUnavailable = isRolling ? 1 : 0, maxSurge = 0 } = strategy.rollingUpdate ?? {};
  return { ...strategy, type, rollingUpdate: { maxUnavailable, maxSurge } };
}
