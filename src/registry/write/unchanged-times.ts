import type { ApiObject } from "../../api/kind.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { withManagedFields } from "../managed-fields/entries.ts";

/** Keeps the times in managedFields of an update that changes nothing else, so that nothing is stored. */
export function keepUnchangedTimes<T extends ApiObject>(next: T, previous: T): T {
  const now = next.metadata?.managedFields ?? [];
  const old = previous.metadata?.managedFields ?? [];
  if (now.length === 0 || now.length !== old.length) return next;
  if (!now.every((entry, i) => deepEqual({ ...entry, time: undefined }, { ...old[i], time: undefined }))) return next;
  const { metadata: nextMetadata, ...rest } = withManagedFields(next, old);
  const { metadata, ...previousRest } = previous;
  return deepEqual(nextMetadata, metadata) && deepEqual(rest, previousRest) ? withManagedFields(next, old) : next;
}
