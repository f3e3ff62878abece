/** DenyServiceExternalIPs: rejects new external IPs of services, since they let a service intercept other traffic. */

import { serviceKind } from "../../../api/core/service/kind.ts";
import type { Service } from "../../../api/core/service/schema.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

export function denyServiceExternalIPs(): AdmissionPlugin {
  return {
    name: "DenyServiceExternalIPs",
    handles: (attributes) => matchesResource(attributes, serviceKind, ["CREATE", "UPDATE"]),
    validate(request) {
      const addressesOf = (service: unknown): readonly string[] =>
        (service as Service | undefined)?.spec?.externalIPs ?? [];
      const existing = addressesOf(request.oldObject);
      if (addressesOf(request.object).every((address) => existing.includes(address))) return;
      throw newForbidden(request, "Use of external IPs is denied by admission control");
    },
  };
}
