/** Warnings for persistent volume claims. */
import { child, key } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { isFractional } from "../../meta/quantity.ts";
import { STORAGE_CLASS_ANNOTATION } from "../persistent-volume/storage-class-name.ts";
import type { PersistentVolumeClaimSpec } from "../volume/schema.ts";
import type { PersistentVolumeClaim } from "./schema.ts";

export function persistentVolumeClaimWarnings(claim: PersistentVolumeClaim): readonly string[] {
  const annotated = claim.metadata?.annotations?.[STORAGE_CLASS_ANNOTATION] !== undefined;
  const at = key("metadata.annotations", STORAGE_CLASS_ANNOTATION);
  return [
    ...(annotated ? [`${at}: deprecated since v1.8; use "storageClassName" attribute instead`] : []),
    ...persistentVolumeClaimSpecWarnings(claim.spec ?? {}, "spec"),
  ];
}

export function persistentVolumeClaimSpecWarnings(spec: PersistentVolumeClaimSpec, path: string): readonly string[] {
  return (["requests", "limits"] as const).flatMap((list) => {
    const amount = spec.resources?.[list]?.storage;
    if (amount === undefined || !isFractional(amount)) return [];
    const at = key(child(child(path, "resources"), list), "storage");
    return [`${at}: fractional byte value ${goQuote(amount)} is invalid, must be an integer`];
  });
}
