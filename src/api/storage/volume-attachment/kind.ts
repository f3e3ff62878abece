import { ageColumn, booleanColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type VolumeAttachment, volumeAttachment } from "./schema.ts";
import { volumeAttachmentStrategy } from "./strategy.ts";
import { validateVolumeAttachmentStatusUpdate } from "./validation.ts";

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
  returnsDeletedObject: true,
  subresources: [
    statusSubresource("VolumeAttachment", {
      prepareForUpdate: replaceStatusOnly,
      validateUpdate: validateVolumeAttachmentStatusUpdate,
      resetFields: [["metadata"], ["spec"]],
    }),
  ],
  storageName: "volumeattachments",
  schema: volumeAttachment,
  columns: [
    nameColumn,
    { ...column("Attacher", (object) => object.spec.attacher), format: "name" },
    column("PV", (object) => object.spec.source.persistentVolumeName ?? ""),
    column("Node", (object) => object.spec.nodeName),
    booleanColumn("Attached", (object) => object.status?.attached ?? false),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadata", "spec"],
  strategy: volumeAttachmentStrategy,
};
