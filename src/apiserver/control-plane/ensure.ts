/** Objects of the server's own: made when missing, corrected when they are not as they are to be. */
import type { ApiObject } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { MASTERS } from "../../auth/user.ts";
import { create } from "../../registry/create.ts";
import type { Registry, Scope } from "../../registry/registry.ts";
import { update } from "../../registry/update.ts";

export function systemScope(namespace: string, signal: AbortSignal): Scope {
  const user = { name: "system:apiserver", uid: "", groups: [MASTERS], extra: {} };
  return { namespace, group: "", user, signal };
}

/**
 * `corrected` makes of what is there what is to be there, and returns undefined where there is nothing to do. What is
 * read is the store's, so that no cache is kept for this.
 */
export async function ensure<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  wanted: T,
  correct: (found: T) => T | undefined = () => undefined,
): Promise<void> {
  const name = wanted.metadata?.name ?? "";
  const found = await registry.objects.get(registry.key(scope, name));
  if (found === undefined) {
    await ignoreConflict(create(registry, scope, wanted));
    return;
  }
  const next = correct(found);
  if (next !== undefined) await ignoreConflict(update(registry, scope, name, next));
}

/** Another server over the same store does the same, or a client was quicker: the next turn sees what has become. */
export async function ignoreConflict(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    const { reason } = error instanceof StatusError ? error.status : {};
    if (reason !== "AlreadyExists" && reason !== "Conflict" && reason !== "NotFound") throw error;
  }
}
