/** The objects that must exist before the server is ready: system namespaces, priority classes and RBAC policy. */
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { priorityClassKind } from "../../api/scheduling/priority-class/kind.ts";
import type { PriorityClass } from "../../api/scheduling/priority-class/schema.ts";
import { systemPriorityClasses } from "../../api/scheduling/priority-class/system-classes.ts";
import type { Registries } from "../../registry/registries.ts";
import { ensure, systemScope } from "./ensure.ts";
import { reconcileBootstrapPolicy } from "./rbac-bootstrap-policy.ts";

/** Kubernetes' system namespaces and the project's own. */
export const SYSTEM_NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system", "svc-system"] as const;

export async function bootstrapCluster(registries: Registries, signal: AbortSignal): Promise<void> {
  await ensureSystemObjects(registries, signal);
  await reconcileBootstrapPolicy(registries, signal);
}

/** Creates the system namespaces and the system priority classes. */
export async function ensureSystemObjects(registries: Registries, signal: AbortSignal): Promise<void> {
  const scope = systemScope("", signal);
  const namespaces = registries.of(namespaceKind);
  await Promise.all(SYSTEM_NAMESPACES.map((name) => ensure(namespaces, scope, { metadata: { name } })));
  const classes = registries.of(priorityClassKind);
  const group = { ...scope, group: priorityClassKind.group };
  await Promise.all(
    systemPriorityClasses.map((wanted) =>
      ensure(classes, group, wanted, (found) => restorePriorityClass(found, wanted)),
    ),
  );
}

function restorePriorityClass(found: PriorityClass, wanted: PriorityClass): PriorityClass | undefined {
  const { globalDefault = false, description } = found;
  if (!globalDefault && description === wanted.description) return undefined;
  return { ...wanted, metadata: found.metadata };
}
