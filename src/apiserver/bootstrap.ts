/** What must exist before the first client comes. */
import type { Namespace } from "../api/core/namespace.ts";
import { namespaceKind } from "../api/core/namespace-kind.ts";
import type { ApiObject } from "../api/kind.ts";
import type { PriorityClass } from "../api/scheduling/priority-class.ts";
import { priorityClassKind } from "../api/scheduling/priority-class-kind.ts";
import { systemPriorityClasses } from "../api/scheduling/system-priority-classes.ts";
import { StatusError } from "../api/status.ts";
import { MASTERS } from "../auth/user.ts";
import { create } from "../registry/create.ts";
import type { Registries } from "../registry/registries.ts";
import type { Registry } from "../registry/registry.ts";
import { bootstrapRbac } from "./bootstrap-policy.ts";

/** Kubernetes' names for its own tools, and the project's. */
export const SYSTEM_NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system", "svc-system"] as const;

export async function bootstrap(registries: Registries, signal: AbortSignal): Promise<void> {
  await bootstrapNamespaces(registries.of(namespaceKind), signal);
  await bootstrapRbac(registries, signal);
  await bootstrapPriorityClasses(registries.of(priorityClassKind), signal);
}

async function bootstrapNamespaces(namespaces: Registry<Namespace>, signal: AbortSignal): Promise<void> {
  for (const name of SYSTEM_NAMESPACES) await createMissing(namespaces, { metadata: { name } }, signal);
}

async function bootstrapPriorityClasses(classes: Registry<PriorityClass>, signal: AbortSignal): Promise<void> {
  for (const systemClass of systemPriorityClasses) await createMissing(classes, systemClass, signal);
}

async function createMissing<T extends ApiObject>(
  registry: Registry<T>,
  object: T,
  signal: AbortSignal,
): Promise<void> {
  const cache = await registry.fresh({ signal });
  if (cache.get(registry.objects.key(undefined, object.metadata?.name ?? "")) !== undefined) return;
  const user = { name: "system:apiserver", uid: "", groups: [MASTERS], extra: {} };
  try {
    await create(registry, { namespace: "", group: registry.kind.group, user, signal }, object);
  } catch (error) {
    // Another server over the same store was faster.
    if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
  }
}
