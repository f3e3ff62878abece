/** Conditions that prevent a runtime from running pods. */
import type { RuntimeCondition, StatusResponse } from "./cri/runtime-status.ts";

/** In Kubernetes' text; empty when all selected conditions are met. */
export function findUnreadyConditions(
  status: StatusResponse | undefined,
  isSelected: (condition: RuntimeCondition) => boolean = () => true,
): readonly string[] {
  return (status?.status?.conditions ?? [])
    .filter((condition) => condition.status !== true && isSelected(condition))
    .map(({ type, reason = "", message = "" }) => {
      const what = type === "NetworkReady" ? "container runtime network" : "container runtime";
      return `${what} not ready: ${type}=false reason:${reason} message:${message}`;
    });
}

/** Why the network is not ready; undefined when it is. */
export function getNetworkProblem(status: StatusResponse | undefined): string | undefined {
  return findUnreadyConditions(status, ({ type }) => type === "NetworkReady")[0];
}
