import { setPersistentVolumeSpecDefaults } from "../../core/persistent-volume/defaults.ts";
import type { VolumeAttachment } from "./schema.ts";

export function setVolumeAttachmentDefaults(object: VolumeAttachment): VolumeAttachment {
  const { source } = object.spec;
  if (source.inlineVolumeSpec === undefined) return object;
  const inlineVolumeSpec = setPersistentVolumeSpecDefaults(source.inlineVolumeSpec);
  return { ...object, spec: { ...object.spec, source: { ...source, inlineVolumeSpec } } };
}
