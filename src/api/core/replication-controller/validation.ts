import { type FieldError, requiredField } from "../../../schema/validation/field-error.ts";
import { validateAlwaysRestarts, validateTemplate, validateTemplateLabels } from "../../apps/workload/validation.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import { isEmpty } from "./defaults.ts";
import type { ReplicationControllerSpec } from "./schema.ts";

export function validateReplicationControllerSpec(
  spec: ReplicationControllerSpec,
  previous: ReplicationControllerSpec | undefined,
): readonly FieldError[] {
  const { selector, template } = spec;
  return [
    ...validateNonNegativeFields(spec, "spec", ["minReadySeconds"]),
    ...(isEmpty(selector) ? [requiredField("spec.selector")] : []),
    ...validateNonNegativeFields(spec, "spec", ["replicas"]),
    ...(template === undefined
      ? [requiredField("spec.template")]
      : [
          ...validateTemplateLabels({ matchLabels: selector }, template, "spec.template"),
          ...validateTemplate(template, previous?.template, "spec.template"),
          ...validateAlwaysRestarts(template, "spec.template", "ReplicationController"),
        ]),
  ];
}
