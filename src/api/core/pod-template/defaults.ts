import { setPodSpecDefaults } from "../pod-spec/defaults.ts";
import { dropDisabledFields } from "../pod-spec/disabled-fields.ts";
import type { PodTemplateSpec } from "./schema.ts";

export function setPodTemplateDefaults(template: PodTemplateSpec): PodTemplateSpec {
  const spec = dropDisabledFields(template.spec ?? { containers: [] });
  return { ...template, spec: setPodSpecDefaults(spec) };
}
