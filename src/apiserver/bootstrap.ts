/** What must exist before the first client comes. */
import type { Namespace } from "../api/core/namespace.ts";
import { namespaceKind } from "../api/core/namespace-kind.ts";
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
}

async function bootstrapNamespaces(namespaces: Registry<Namespace>, signal: AbortSignal): Promise<void> {
  const cache = await namespaces.fresh({ signal });
  const user = { name: "system:apiserver", uid: "", groups: [MASTERS], extra: {} };
  for (const name of SYSTEM_NAMESPACES) {
    if (cache.get(namespaces.objects.key(undefined, name)) !== undefined) continue;
    try {
      await create(namespaces, { namespace: "", group: "", user, signal }, { metadata: { name } });
    } catch (error) {
      // Another server over the same store was faster.
      if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
    }
  }
}
