/** Rules for volume attachments. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  tooLong,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child } from "../../../schema/value/field-path.ts";
import { validateInlineVolumeSpec } from "../../core/persistent-volume/validation.ts";
import { validateDriverName } from "../../core/volume/source-validation.ts";
import { dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import {
  type VolumeAttachment,
  type VolumeAttachmentSource,
  type VolumeError,
  volumeAttachmentSpec,
} from "./schema.ts";

const METADATA_MAX_BYTES = 256 * 1024;
const MESSAGE_MAX = 1024;
const NO_CODE = `must be between 0 and ${2 ** 31 - 1}, inclusive`;
const ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

/** The names of drivers and volumes are validated for new attachments only. */
export function validateVolumeAttachment(object: VolumeAttachment, previous?: VolumeAttachment): readonly FieldError[] {
  const { attacher, source, nodeName } = object.spec;
  const volume = source.persistentVolumeName;
  return [
    ...(attacher === "" ? [requiredField("spec.attacher")] : []),
    ...validateSource(source, "spec.source"),
    ...validateName("spec.nodeName", nodeName, dns1123Subdomain),
    ...validateStatus(object),
    ...(previous === undefined ? validateDriverName(attacher, "spec.attacher") : []),
    ...(previous === undefined && volume !== undefined
      ? validateName("spec.source.persistentVolumeName", volume, dns1123Subdomain)
      : []),
  ];
}

function validateSource(source: VolumeAttachmentSource, path: string): readonly FieldError[] {
  const { inlineVolumeSpec: inline, persistentVolumeName: name } = source;
  if (inline !== undefined && name !== undefined) return [forbiddenField(path, ONE_SOURCE)];
  if (inline !== undefined) return validateInlineVolumeSpec(inline, child(path, "inlineVolumeSpec"));
  if (name === undefined) return [requiredField(path, ONE_SOURCE)];
  return name === ""
    ? [requiredField(child(path, "persistentVolumeName"), "must specify non empty persistentVolumeName")]
    : [];
}

function validateStatus({ status }: VolumeAttachment): readonly FieldError[] {
  const entries = Object.entries(status?.attachmentMetadata ?? {});
  const bytes = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0);
  return [
    ...(bytes > METADATA_MAX_BYTES ? [tooLong("status.attachmentMetadata", METADATA_MAX_BYTES)] : []),
    ...validateError(status?.attachError, "status.attachError"),
    ...validateError(status?.detachError, "status.detachError"),
  ];
}

function validateError(error: VolumeError | undefined, path: string): readonly FieldError[] {
  const { message = "", errorCode = 0 } = error ?? {};
  return [
    // Kubernetes' message has another limit than its check.
    ...(Buffer.byteLength(message) > MESSAGE_MAX ? [tooLong(child(path, "message"), METADATA_MAX_BYTES)] : []),
    ...(errorCode < 0 ? [invalidField(child(path, "errorCode"), errorCode, NO_CODE)] : []),
  ];
}

export function validateVolumeAttachmentUpdate(
  next: VolumeAttachment,
  previous: VolumeAttachment,
): readonly FieldError[] {
  return deepEqual(next.spec, previous.spec)
    ? []
    : [invalidField("spec", goStruct(volumeAttachmentSpec, next.spec), "field is immutable")];
}

/** Rules for status updates. */
export function validateVolumeAttachmentStatusUpdate(
  next: VolumeAttachment,
  previous: VolumeAttachment,
): readonly FieldError[] {
  return [...validateVolumeAttachment(next, previous), ...validateVolumeAttachmentUpdate(next, previous)];
}
