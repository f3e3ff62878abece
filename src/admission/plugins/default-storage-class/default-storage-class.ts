/** DefaultStorageClass: sets the default storage class on claims that request none. */
import { STORAGE_CLASS_ANNOTATION } from "../../../api/core/persistent-volume/storage-class-name.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import { matchesResource, metadataOf } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { findDefaultClass } from "./default-class.ts";

const DEFAULT_ANNOTATIONS = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

export function defaultStorageClass({ reader }: Pick<PluginDeps, "reader">): AdmissionPlugin {
  return {
    name: "DefaultStorageClass",
    handles: (attributes) => matchesResource(attributes, persistentVolumeClaimKind, ["CREATE"]),
    async mutate(request) {
      const claim = request.object as PersistentVolumeClaim;
      const hasAnnotation = STORAGE_CLASS_ANNOTATION in (metadataOf(claim).annotations ?? {});
      if (claim.spec?.storageClassName !== undefined || hasAnnotation) return undefined;
      const storageClassName = await findDefaultClass(storageClassKind, DEFAULT_ANNOTATIONS, reader, request);
      return storageClassName === undefined ? undefined : { ...claim, spec: { ...claim.spec, storageClassName } };
    },
  };
}
