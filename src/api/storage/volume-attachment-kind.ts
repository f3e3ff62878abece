import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type VolumeAttachment, volumeAttachment } from "./volume-attachment.ts";

export const volumeAttachmentKind: Kind<VolumeAttachment> = {
  group: "storage.svc.io",
  version: "v1",
  kind: "VolumeAttachment",
  listKind: "VolumeAttachmentList",
  plural: "volumeattachments",
  singular: "volumeattachment",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("VolumeAttachment")],
  storageName: "volumeattachments",
  schema: volumeAttachment,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
