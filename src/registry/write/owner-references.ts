import type { ApiObject } from "../../api/kind.ts";
import type { OwnerReference } from "../../api/meta/object-meta.ts";
import { metadataOf, withMetadata } from "./object-metadata.ts";
import type { WriteRequest } from "./request.ts";

/** Part of the warning about duplicates that admission plugins add. */
export const AFTER_ADMISSION = " after mutating admission happens";

/** Removes duplicate owner references, with a warning. */
export function dedupOwnerReferences<T extends ApiObject>(
  { options }: Pick<WriteRequest<T>, "options">,
  object: T,
  when = "",
): T {
  const owners = metadataOf(object).ownerReferences ?? [];
  if (owners.length < 2) return object;
  const seen = new Set<string>();
  const isDuplicate = owners.map((owner) => seen.size === seen.add(identityOf(owner)).size);
  if (!isDuplicate.includes(true)) return object;
  const ownerReferences = owners.filter((_, i) => !isDuplicate[i]);
  const uids = new Set(owners.filter((_, i) => isDuplicate[i]).map(({ uid }) => uid));
  options.warn?.([
    `.metadata.ownerReferences contains duplicate entries${when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${[...uids].join(", ")}`,
  ]);
  return withMetadata(object, { ...metadataOf(object), ownerReferences });
}

function identityOf({ apiVersion, kind, name, uid, controller, blockOwnerDeletion }: OwnerReference): string {
  return JSON.stringify([uid, name, kind, apiVersion, controller, blockOwnerDeletion]);
}
