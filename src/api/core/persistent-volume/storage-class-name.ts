/** The storage class of a volume or claim. The annotation precedes the field and takes precedence. */
import type { ApiObject } from "../../kind.ts";

export const STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

interface WithClass extends ApiObject {
  readonly spec?: { readonly storageClassName?: string | undefined } | undefined;
}

export function storageClassNameOf(object: WithClass): string {
  return object.metadata?.annotations?.[STORAGE_CLASS_ANNOTATION] ?? object.spec?.storageClassName ?? "";
}
