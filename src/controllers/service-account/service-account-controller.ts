/** Gives every namespace the account that its pods run as when they name no other. */

import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import type { ControllerDeps } from "../controller.ts";
import { keepInEveryNamespace } from "./ensure-in-namespaces.ts";

export async function runServiceAccountController(deps: ControllerDeps): Promise<void> {
  await keepInEveryNamespace<ServiceAccount>(deps, {
    kind: serviceAccountKind,
    name: "default",
    wanted: (found) => (found === undefined ? {} : undefined),
  });
}
