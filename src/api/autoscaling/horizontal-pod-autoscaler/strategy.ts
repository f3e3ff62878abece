import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus } from "../../strategy.ts";
import { setHorizontalPodAutoscalerDefaults } from "./defaults.ts";
import type { HorizontalPodAutoscaler } from "./schema.ts";
import { validateAutoscaler } from "./validation.ts";

export const horizontalPodAutoscalerStrategy: Strategy<HorizontalPodAutoscaler> = {
  setDefaults: setHorizontalPodAutoscalerDefaults,
  prepareForCreate: dropStatus,
  prepareForUpdate: keepStatus,
  validate: validateAutoscaler,
};
