import { semanticEqual } from "../../../schema/semantic-equal.ts";
import type { Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setPodTemplateDefaults } from "./defaults.ts";
import { type PodTemplate, podTemplateSpec } from "./schema.ts";
import { validatePodTemplateSpec } from "./validation.ts";
import { podTemplateWarnings } from "./warnings.ts";

export const podTemplateStrategy: Strategy<PodTemplate> = {
  setDefaults: (object) => ({ ...object, template: setPodTemplateDefaults(object.template ?? {}) }),
  prepareForUpdate: (next, previous) =>
    updateGeneration(next, previous, !semanticEqual(podTemplateSpec, next.template, previous.template)),
  prepareForCreate: setFirstGeneration,
  validate: (object) => validatePodTemplateSpec(object.template ?? {}, "template"),
  warnings: (object, previous) => {
    const unchanged = previous !== undefined && previous.metadata?.generation === object.metadata?.generation;
    return unchanged ? [] : podTemplateWarnings(object.template ?? {}, "template");
  },
};
