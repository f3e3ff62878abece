import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus } from "../../strategy.ts";
import { setVolumeAttachmentDefaults } from "./defaults.ts";
import type { VolumeAttachment } from "./schema.ts";
import { validateVolumeAttachment, validateVolumeAttachmentUpdate } from "./validation.ts";

export const volumeAttachmentStrategy: Strategy<VolumeAttachment> = {
  allowUnconditionalUpdate: false,
  setDefaults: setVolumeAttachmentDefaults,
  prepareForCreate: dropStatus,
  prepareForUpdate: keepStatus,
  validate: validateVolumeAttachment,
  validateUpdate: validateVolumeAttachmentUpdate,
};
