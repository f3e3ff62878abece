import { boolean, int32, map, object, optional, pointer, required, string, time } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { persistentVolumeSpec } from "../../core/persistent-volume/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const volumeAttachmentSource = object("storage/v1.VolumeAttachmentSource", {
  persistentVolumeName: pointer(1, string),
  inlineVolumeSpec: pointer(2, persistentVolumeSpec),
});
export type VolumeAttachmentSource = Infer<typeof volumeAttachmentSource>;

export const volumeAttachmentSpec = object("storage/v1.VolumeAttachmentSpec", {
  attacher: required(1, string),
  source: required(2, volumeAttachmentSource),
  nodeName: required(3, string),
});
export type VolumeAttachmentSpec = Infer<typeof volumeAttachmentSpec>;

export const volumeError = object("storage/v1.VolumeError", {
  time: optional(1, time),
  message: optional(2, string),
  errorCode: pointer(3, int32, { featureGate: "MutableCSINodeAllocatableCount" }),
});
export type VolumeError = Infer<typeof volumeError>;

export const volumeAttachmentStatus = object("storage/v1.VolumeAttachmentStatus", {
  attached: required(1, boolean),
  attachmentMetadata: optional(2, map(string)),
  attachError: pointer(3, volumeError),
  detachError: pointer(4, volumeError),
});
export type VolumeAttachmentStatus = Infer<typeof volumeAttachmentStatus>;

export const volumeAttachment = object("storage/v1.VolumeAttachment", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, volumeAttachmentSpec),
  status: optional(3, volumeAttachmentStatus),
});
export type VolumeAttachment = Infer<typeof volumeAttachment>;
