/** AlwaysDeny: rejects all requests. Used for testing. */
import { type AdmissionRequest, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

export function alwaysDeny(): AdmissionPlugin {
  const deny = (request: AdmissionRequest): never => {
    throw newForbidden(request, "admission control is denying all modifications");
  };
  return { name: "AlwaysDeny", handles: () => true, mutate: deny, validate: deny };
}
