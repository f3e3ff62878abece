/** Deletions of objects that cannot be read from the store, with the gate AllowUnsafeMalformedObjectDeletion. */
import type { ApiObject } from "../api/kind.ts";
import { invalid } from "../api/status.ts";
import { invalidField, renderFieldError } from "../schema/validation/field-error.ts";
import type { DeleteOptions } from "./delete.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import { runDeleteAdmission } from "./write/admission.ts";

/** The field of DeleteOptions. */
export const IGNORE_READ_ERROR = "ignoreStoreReadErrorWithClusterBreakingPotential";

/** Deletes at once: finalizers cannot be read. Throws a 422 for an object that can be read, or does not exist. */
export async function removeUnreadable<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  options: DeleteOptions,
): Promise<void> {
  const empty = { metadata: {} } as T;
  const check = (): Promise<void> => runDeleteAdmission(empty, options);
  if (await registry.objects.deleteUnreadable(registry.key(scope, name), check)) return;
  const why = "is exclusively used to delete corrupt object(s), try again by removing this option";
  throw invalid(registry.subject(scope, name), [invalidField(IGNORE_READ_ERROR, true, why)], renderFieldError);
}
