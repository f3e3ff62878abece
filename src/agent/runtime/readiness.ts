/** What a runtime says keeps it from running pods. */
import type { RuntimeCondition, StatusResponse } from "./cri/runtime-status.ts";

/** In Kubernetes' words, as far as the conditions are chosen; empty when nothing does. */
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

/** Why pods can have no network; undefined when they can. */
export function getNetworkProblem(status: StatusResponse | undefined): string | undefined {
  return findUnreadyConditions(status, ({ type }) => type === "NetworkReady")[0];
}
