import { setPodSpecDefaults } from "../pod-spec/defaults.ts";
import type { PodTemplateSpec } from "./schema.ts";

export function setPodTemplateDefaults(template: PodTemplateSpec): PodTemplateSpec {
  return { ...template, spec: setPodSpecDefaults(template.spec ?? { containers: [] }) };
}
