/** AlwaysAdmit: admits all requests. Deprecated, as in Kubernetes: it has no effect. */
import type { AdmissionPlugin } from "../../chain/plugin.ts";

export function alwaysAdmit(): AdmissionPlugin {
  return { name: "AlwaysAdmit", handles: () => false };
}
