import { semanticEqual } from "../../../schema/semantic-equal.ts";
import type { Strategy } from "../../kind.ts";
import { type PodTemplate, podTemplateSpec } from "./schema.ts";
import { podTemplateWarnings, setPodTemplateDefaults, validatePodTemplateSpec } from "./validation.ts";

export const podTemplateStrategy: Strategy<PodTemplate> = {
  setDefaults: (object) => ({ ...object, template: setPodTemplateDefaults(object.template ?? {}) }),
  prepareForUpdate: (next, previous) => {
    const before = previous.metadata?.generation ?? 0;
    const changed = !semanticEqual(podTemplateSpec, next.template, previous.template);
    const generation = changed ? before + 1 : before;
    return generation === 0 ? next : { ...next, metadata: { ...next.metadata, generation } };
  },
  prepareForCreate: (object) => ({ ...object, metadata: { ...object.metadata, generation: 1 } }),
  validate: (object) => validatePodTemplateSpec(object.template ?? {}, "template"),
  warnings: (object, previous) => {
    const unchanged = previous !== undefined && previous.metadata?.generation === object.metadata?.generation;
    return unchanged ? [] : podTemplateWarnings(object.template ?? {}, "template");
  },
};
