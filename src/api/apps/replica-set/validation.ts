import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import {
  isValidSelector,
  validateAlwaysRestarts,
  validateSelector,
  validateTemplate,
  validateTemplateLabels,
} from "../workload/validation.ts";
import type { ReplicaSetSpec } from "./schema.ts";

export function validateReplicaSetSpec(
  spec: ReplicaSetSpec,
  previous: ReplicaSetSpec | undefined,
): readonly FieldError[] {
  const { selector, template = {} } = spec;
  return [
    ...validateNonNegativeFields(spec, "spec", ["replicas", "minReadySeconds"]),
    ...validateSelector(selector, "spec.selector", "deployment"),
    ...(isValidSelector(selector)
      ? [
          ...validateTemplateLabels(selector, template, "spec.template"),
          ...validateTemplate(template, previous?.template, "spec.template"),
          ...validateAlwaysRestarts(template, "spec.template", "ReplicaSet"),
        ]
      : [invalidField("spec.selector", goStruct(labelSelector, selector), "invalid label selector")]),
  ];
}
