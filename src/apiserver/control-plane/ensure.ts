/** Creates missing objects of the control plane and corrects changed ones. */
import type { ApiObject } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { StatusError } from "../../api/status.ts";
import { MASTERS } from "../../auth/user.ts";
import { create } from "../../registry/create.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Scope } from "../../registry/scope.ts";
import { update } from "../../registry/update.ts";

/** The manager of the objects that the server creates for itself. */
export const OWN_FIELD_MANAGER = { fieldManager: "kube-apiserver" } as const;

export function systemScope(namespace: string, signal: AbortSignal): Scope {
  const user = { name: "system:apiserver", uid: "", groups: [MASTERS], extra: {} };
  return { namespace, group: "", user, signal };
}

/**
 * Creates the object, or updates the existing one with the result of `correct`, which returns undefined when nothing
 * has to change. Reads from the store, so that the kind needs no watch cache for this.
 */
export async function ensure<T extends ApiObject>(
  registry: Registry<T>,
  { namespace, user, signal }: Scope,
  wanted: T,
  correct: (found: T) => T | undefined = () => undefined,
): Promise<void> {
  const name = wanted.metadata?.name ?? "";
  const scope = { namespace, group: kubernetesGroup(registry.kind.group), user, signal };
  const found = await registry.objects.get(registry.key(scope, name));
  if (found === undefined) {
    await ignoreConflict(create(registry, scope, wanted, OWN_FIELD_MANAGER));
    return;
  }
  const next = correct(found);
  if (next !== undefined) await ignoreConflict(update(registry, scope, name, next, OWN_FIELD_MANAGER));
}

/** Ignores the failure of a write that another server or a client preceded; the next run reads the new state. */
export async function ignoreConflict(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    const { reason } = error instanceof StatusError ? error.status : {};
    if (reason !== "AlreadyExists" && reason !== "Conflict" && reason !== "NotFound") throw error;
  }
}
