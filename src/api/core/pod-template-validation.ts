/**
 * Rules, defaults and warnings for the pods that workloads describe; one set of rules with pods themselves
 * (`validatePodSpec` in pod-validation.ts). `path` is where the template stands: `spec.template`, `template`.
 *
 *     validatePodTemplateSpec(template, path)   errors of metadata and spec
 *     setPodTemplateDefaults(template)          the template with what its author left out
 *     podTemplateWarnings(template, path)       what is deprecated or pointless in it
 */
import { type FieldError, forbiddenField, requiredField } from "../../schema/field-error.ts";
import { child } from "../../schema/field-path.ts";
import { validateAnnotations, validateLabels } from "../meta/object-meta-validation.ts";
import { setPodSpecDefaults } from "./pod-defaults.ts";
import type { PodTemplateSpec } from "./pod-template.ts";
import { validatePodSpec } from "./pod-validation.ts";
import { podSpecWarnings } from "./pod-warnings.ts";

export function validatePodTemplateSpec(template: PodTemplateSpec, path: string): readonly FieldError[] {
  const { metadata = {}, spec } = template;
  const at = child(path, "spec");
  return [
    ...validateLabels(metadata.labels, child(path, "labels")),
    ...validateAnnotations(metadata.annotations, child(path, "annotations")),
    ...(spec === undefined ? [requiredField(child(at, "containers"))] : validatePodSpec(spec, at)),
    ...((spec?.ephemeralContainers ?? []).length === 0
      ? []
      : [forbiddenField(child(at, "ephemeralContainers"), "ephemeral containers not allowed in pod template")]),
  ];
}

export function setPodTemplateDefaults(template: PodTemplateSpec): PodTemplateSpec {
  return { ...template, spec: setPodSpecDefaults(template.spec ?? { containers: [] }) };
}

export function podTemplateWarnings(template: PodTemplateSpec, path: string): readonly string[] {
  return template.spec === undefined ? [] : podSpecWarnings(template.spec, child(path, "spec"), template.metadata);
}
