/** Volumes and claims wear a finalizer from the start, so that none goes away beneath a pod that uses it. */
import type { ApiObject } from "../../kind.ts";

export function addProtectionFinalizer<T extends ApiObject>(object: T, finalizer: string): T {
  const finalizers = object.metadata?.finalizers ?? [];
  if (finalizers.includes(finalizer)) return object;
  return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers, finalizer] } };
}
