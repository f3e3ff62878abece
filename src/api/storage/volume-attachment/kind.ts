import { ageColumn, booleanColumn, column, nameColumn } from "../../columns/columns.ts";
import { setPersistentVolumeSpecDefaults } from "../../core/persistent-volume/defaults.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { dropStatus, keepStatus, replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type VolumeAttachment, volumeAttachment } from "./schema.ts";
import {
  validateVolumeAttachment,
  validateVolumeAttachmentStatusUpdate,
  validateVolumeAttachmentUpdate,
} from "./validation.ts";

function setVolumeAttachmentDefaults(object: VolumeAttachment): VolumeAttachment {
  const { source } = object.spec;
  if (source.inlineVolumeSpec === undefined) return object;
  const inlineVolumeSpec = setPersistentVolumeSpecDefaults(source.inlineVolumeSpec);
  return { ...object, spec: { ...object.spec, source: { ...source, inlineVolumeSpec } } };
}

/** A member whose feature is off unless asked for goes, unless the attachment had it. */
function prepareForStatusUpdate(next: VolumeAttachment, previous: VolumeAttachment): VolumeAttachment {
  const kept = replaceStatusOnly(next, previous);
  const { attachError, detachError } = previous.status ?? {};
  if (kept.status === undefined || attachError?.errorCode !== undefined || detachError?.errorCode !== undefined) {
    return kept;
  }
  const bare = (name: "attachError" | "detachError") => {
    const { errorCode: _, ...error } = kept.status?.[name] ?? {};
    return kept.status?.[name] === undefined ? {} : { [name]: error };
  };
  return { ...kept, status: { ...kept.status, ...bare("attachError"), ...bare("detachError") } };
}

const volumeAttachmentStrategy: Strategy<VolumeAttachment> = {
  allowUnconditionalUpdate: false,
  setDefaults: setVolumeAttachmentDefaults,
  prepareForCreate: dropStatus,
  prepareForUpdate: keepStatus,
  validate: validateVolumeAttachment,
  validateUpdate: validateVolumeAttachmentUpdate,
};

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
  subresources: [
    statusSubresource("VolumeAttachment", {
      prepareForUpdate: prepareForStatusUpdate,
      validateUpdate: validateVolumeAttachmentStatusUpdate,
      resetFields: [["metadata"], ["spec"]],
    }),
  ],
  storageName: "volumeattachments",
  schema: volumeAttachment,
  columns: [
    nameColumn,
    { ...column("Attacher", (object) => object.spec.attacher, "The driver that attaches."), format: "name" },
    column("PV", (object) => object.spec.source.persistentVolumeName ?? "", "The volume."),
    column("Node", (object) => object.spec.nodeName, "Where it is attached."),
    booleanColumn("Attached", (object) => object.status?.attached ?? false, "Whether it is attached by now."),
    ageColumn,
  ],
  selectableFields: {},
  strategy: volumeAttachmentStrategy,
};
