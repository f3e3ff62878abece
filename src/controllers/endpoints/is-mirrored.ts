import type { Endpoints } from "../../api/core/endpoints/schema.ts";

export const LEADER_ELECTION = "control-plane.alpha.kubernetes.io/leader";
const SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror";

/** Whether slices are made of the object's addresses. */
export function isMirrored({ metadata }: Endpoints): boolean {
  return metadata?.labels?.[SKIP_MIRROR] !== "true" && metadata?.annotations?.[LEADER_ELECTION] === undefined;
}
