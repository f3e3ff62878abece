import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus, replaceStatusOnly } from "../../strategy.ts";
import { setVolumeAttachmentDefaults } from "./defaults.ts";
import type { VolumeAttachment } from "./schema.ts";
import { validateVolumeAttachment, validateVolumeAttachmentUpdate } from "./validation.ts";

/** Drops the field of a feature that is off by default, unless the stored attachment has it. */
export function prepareForStatusUpdate(next: VolumeAttachment, previous: VolumeAttachment): VolumeAttachment {
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

export const volumeAttachmentStrategy: Strategy<VolumeAttachment> = {
  allowUnconditionalUpdate: false,
  setDefaults: setVolumeAttachmentDefaults,
  prepareForCreate: dropStatus,
  prepareForUpdate: keepStatus,
  validate: validateVolumeAttachment,
  validateUpdate: validateVolumeAttachmentUpdate,
};
