/** What the binder reads from storage classes. */
import { storageClassNameOf } from "../../../api/core/persistent-volume/storage-class-name.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { isDefaultClass } from "../../../api/storage/storage-class/kind.ts";
import type { StorageClass } from "../../../api/storage/storage-class/schema.ts";
import type { Informer } from "../../../client/informer/informer.ts";

/** Whether the claim is bound when its first pod is scheduled. A missing class does not delay. */
export function delaysBinding(claim: PersistentVolumeClaim, classes: Informer<StorageClass>): boolean {
  const name = storageClassNameOf(claim);
  return name !== "" && classes.get(name)?.volumeBindingMode === "WaitForFirstConsumer";
}

/** The newest of the default classes; the first by name of those created in the same second. */
export function findDefaultClass(classes: Informer<StorageClass>): StorageClass | undefined {
  const defaults = [...classes.list()].filter(isDefaultClass);
  return defaults.sort(compareAge)[0];
}

function compareAge({ metadata: a }: StorageClass, { metadata: b }: StorageClass): number {
  const [timeA = "", timeB = ""] = [a?.creationTimestamp, b?.creationTimestamp];
  if (timeA !== timeB) return timeA > timeB ? -1 : 1;
  return (a?.name ?? "") < (b?.name ?? "") ? -1 : 1;
}
