import type { CustomResourceDefinition } from "./schema.ts";

/** The version that objects are stored in from now on is one that they may be stored in. */
export function addStoredVersion(
  object: CustomResourceDefinition,
  when: "always" | "if none",
): CustomResourceDefinition {
  const stored = object.status?.storedVersions ?? [];
  const storage = object.spec.versions.find((version) => version.storage)?.name;
  if (storage === undefined || stored.includes(storage) || (when === "if none" && stored.length > 0)) return object;
  return { ...object, status: { ...object.status, storedVersions: [...stored, storage] } };
}
