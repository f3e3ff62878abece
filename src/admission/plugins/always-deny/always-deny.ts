/** For tests of clusters: everything is refused, or nothing is. */
import { newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../../chain/plugin.ts";

/** Has nothing to say, so it is never asked. */
export function alwaysAdmit(): AdmissionPlugin {
  return { name: "AlwaysAdmit", handles: () => false };
}

export function alwaysDeny(): AdmissionPlugin {
  const deny = (request: AdmissionRequest): never => {
    throw newForbidden(request, "admission control is denying all modifications");
  };
  return { name: "AlwaysDeny", handles: () => true, mutate: deny, validate: deny };
}
