import type { CustomResourceDefinition } from "./schema.ts";

/** Adds the storage version to `status.storedVersions`. */
export function addStoredVersion(
  object: CustomResourceDefinition,
  when: "always" | "if none",
): CustomResourceDefinition {
  const stored = object.status?.storedVersions ?? [];
  const storage = object.spec.versions.find((version) => version.storage)?.name;
  if (storage === undefined || stored.includes(storage) || (when === "if none" && stored.length > 0)) return object;
  return { ...object, status: { ...object.status, storedVersions: [...stored, storage] } };
}
