/** The service account controller: creates the service account `default` in each namespace. */

import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import type { ControllerDeps } from "../controller.ts";
import { ensureInNamespaces } from "./ensure-in-namespaces.ts";

export async function runServiceAccountController(deps: ControllerDeps): Promise<void> {
  await ensureInNamespaces<ServiceAccount>(deps, {
    kind: serviceAccountKind,
    name: "default",
    queueName: "serviceaccount",
    desired: (found) => (found === undefined ? {} : undefined),
  });
}
