import { child } from "../../../schema/value/field-path.ts";
import { podSpecWarnings } from "../pod-spec/warnings.ts";
import type { PodTemplateSpec } from "./schema.ts";

export function podTemplateWarnings(template: PodTemplateSpec, path: string): readonly string[] {
  return template.spec === undefined ? [] : podSpecWarnings(template.spec, child(path, "spec"), template.metadata);
}
