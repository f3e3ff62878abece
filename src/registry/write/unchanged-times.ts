import type { ApiObject } from "../../api/kind.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { withManagedFields } from "../managed-fields/entries.ts";

/** Keeps the times in managedFields of an update that changes nothing else, so that nothing is stored. */
export function keepUnchangedTimes<T extends ApiObject>(next: T, previous: T): T {
  const now = next.metadata?.managedFields ?? [];
  const old = previous.metadata?.managedFields ?? [];
  if (now.length === 0 || now.length !== old.length) return next;
  const unchanged = withManagedFields(next, old);
  const { metadata, ...rest } = unchanged;
  const { metadata: previousMetadata, ...previousRest } = previous;
  // Most updates change what is compared first, the metadata, or the rest of the object.
  if (!deepEqual(metadata, previousMetadata) || !deepEqual(rest, previousRest)) return next;
  const isSame = now.every((entry, i) => deepEqual({ ...entry, time: undefined }, { ...old[i], time: undefined }));
  return isSame ? unchanged : next;
}
