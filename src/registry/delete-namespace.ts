/** Namespaces are deleted in two steps: after this one, the namespace controller deletes their content. */
import type { Namespace } from "../api/core/namespace/schema.ts";
import { type DeleteOptions, type DeleteResult, remove } from "./delete.ts";
import { get } from "./get.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import { runDeleteAdmission } from "./write/admission.ts";
import { guaranteedUpdate } from "./write/guaranteed-update.ts";

/** Marks the namespace as terminating; the namespace controller empties it and removes its finalizer. */
export async function deleteNamespace(
  namespaces: Registry<Namespace>,
  scope: Scope,
  name: string,
  options: DeleteOptions,
): Promise<DeleteResult<Namespace>> {
  const { object } = await get(namespaces, scope, name);
  if ((object.spec?.finalizers ?? []).length === 0) return await remove(namespaces, scope, name, options);
  if (object.metadata?.deletionTimestamp !== undefined) return { object, deleted: false };
  const preconditions = options.preconditions;
  const marked = await guaranteedUpdate(
    { registry: namespaces, scope, name, options: { dryRun: options.dryRun, preconditions } },
    async (previous): Promise<Namespace> => {
      await runDeleteAdmission(previous, options);
      return {
        ...previous,
        metadata: { ...previous.metadata, deletionTimestamp: namespaces.timestamp() },
        status: { ...previous.status, phase: "Terminating" },
      };
    },
  );
  return { object: marked, deleted: false };
}
