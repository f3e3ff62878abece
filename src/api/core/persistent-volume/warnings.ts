/** Warnings for persistent volumes. */
import { index, key } from "../../../schema/value/field-path.ts";
import { nodeTermWarnings } from "../pod-spec/warnings.ts";
import { removedDriverWarnings } from "../volume/warnings.ts";
import type { PersistentVolume } from "./schema.ts";
import { STORAGE_CLASS_ANNOTATION } from "./storage-class-name.ts";
import { MOUNT_OPTIONS_ANNOTATION } from "./validation.ts";

const RECYCLE =
  "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";

export function persistentVolumeWarnings(volume: PersistentVolume): readonly string[] {
  const annotations = volume.metadata?.annotations ?? {};
  const annotated = (name: string, why: string): readonly string[] =>
    annotations[name] === undefined ? [] : [`${key("metadata.annotations", name)}: ${why}`];
  const spec = volume.spec ?? {};
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  return [
    ...annotated(STORAGE_CLASS_ANNOTATION, 'deprecated since v1.8; use "storageClassName" attribute instead'),
    ...annotated(MOUNT_OPTIONS_ANNOTATION, 'deprecated since v1.31; use "mountOptions" attribute instead'),
    ...(spec.persistentVolumeReclaimPolicy === "Recycle" ? [`spec.persistentVolumeReclaimPolicy: ${RECYCLE}`] : []),
    ...terms.flatMap((term, i) =>
      nodeTermWarnings(term, index("spec.nodeAffinity.required.nodeSelectorTerms", i), false),
    ),
    ...removedDriverWarnings(spec, "spec"),
  ];
}
