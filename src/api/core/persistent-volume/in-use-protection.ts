/** Volumes and claims are created with a finalizer, so that they are not removed while a pod uses them. */
import type { ApiObject } from "../../kind.ts";

export function addProtectionFinalizer<T extends ApiObject>(object: T, finalizer: string): T {
  const finalizers = object.metadata?.finalizers ?? [];
  if (finalizers.includes(finalizer)) return object;
  return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers, finalizer] } };
}
