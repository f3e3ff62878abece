import { duplicateField, type FieldError, validateEach } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import type { Toleration } from "../../core/pod-spec/affinity.ts";
import { validateTolerations } from "../../core/pod-spec/toleration-validation.ts";
import { validateContainerResources } from "../../core/resources/validation.ts";
import { dns1123Label, validateName } from "../../meta/validation/names.ts";
import { validateLabels } from "../../meta/validation/object-meta.ts";
import { repeatedIndexes } from "../../meta/validation/repeated.ts";
import type { RuntimeClass } from "./schema.ts";

export function validateRuntimeClass({ handler, overhead, scheduling }: RuntimeClass): readonly FieldError[] {
  const { nodeSelector, tolerations = [] } = scheduling ?? {};
  return [
    ...validateName("handler", handler, dns1123Label),
    // The pod overhead follows the rules for limits.
    ...validateContainerResources({ limits: overhead?.podFixed }, "overhead"),
    ...validateLabels(nodeSelector, "scheduling.nodeSelector"),
    ...validateTolerations(tolerations, "scheduling.tolerations.tolerations"),
    ...validateUniqueTolerations(tolerations, "scheduling.tolerations"),
  ];
}

/** Compares tolerations without tolerationSeconds. */
function validateUniqueTolerations(tolerations: readonly Toleration[], path: string): readonly FieldError[] {
  const repeated = repeatedIndexes(tolerations.map(({ tolerationSeconds: _, ...rest }) => rest));
  return validateEach(repeated, (i) => [duplicateField(index(path, i), tolerations[i])]);
}
