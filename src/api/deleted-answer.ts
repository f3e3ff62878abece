/** Kinds whose delete is answered with the object, gone or not, and not with a `Status`. */
import type { Kind } from "./kind.ts";

const kinds: ReadonlySet<string> = new Set([
  "/PersistentVolume",
  "/PersistentVolumeClaim",
  "/Pod",
  "/PodTemplate",
  "/ResourceQuota",
  "/Service",
  "/ServiceAccount",
  "storage.svc.io/CSIDriver",
  "storage.svc.io/CSINode",
  "storage.svc.io/StorageClass",
  "storage.svc.io/VolumeAttachment",
]);

export function answersDeleted({ group, kind }: Pick<Kind, "group" | "kind">): boolean {
  return kinds.has(`${group}/${kind}`);
}
