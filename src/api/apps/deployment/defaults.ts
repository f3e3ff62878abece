import { setTemplateDefaults, specOf } from "../workload/strategy.ts";
import type { Deployment, DeploymentStrategy } from "./schema.ts";

const REPLICAS = 1;

const REVISIONS_KEPT = 10;

const PROGRESS_SECONDS = 600;

/** The default of maxUnavailable and maxSurge. */
const DEFAULT_ROLLING_UPDATE_LIMIT = "25%";

export function setDeploymentDefaults(object: Deployment): Deployment {
  const spec = specOf(object);
  return {
    ...object,
    spec: {
      ...spec,
      replicas: spec.replicas ?? REPLICAS,
      template: setTemplateDefaults(spec.template),
      strategy: setStrategyDefaults(spec.strategy ?? {}),
      revisionHistoryLimit: spec.revisionHistoryLimit ?? REVISIONS_KEPT,
      progressDeadlineSeconds: spec.progressDeadlineSeconds ?? PROGRESS_SECONDS,
    },
  };
}

function setStrategyDefaults(strategy: DeploymentStrategy): DeploymentStrategy {
  const type = strategy.type || "RollingUpdate";
  if (type !== "RollingUpdate") return strategy;
  const { maxUnavailable = DEFAULT_ROLLING_UPDATE_LIMIT, maxSurge = DEFAULT_ROLLING_UPDATE_LIMIT } =
    strategy.rollingUpdate ?? {};
  return { ...strategy, type, rollingUpdate: { maxUnavailable, maxSurge } };
}
