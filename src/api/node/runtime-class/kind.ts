import { duplicateField, type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { index } from "../../../schema/value/field-path.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { labelDeprecation } from "../../core/node/deprecated-labels.ts";
import type { Toleration } from "../../core/pod-spec/affinity.ts";
import { validateTolerations } from "../../core/pod-spec/toleration-validation.ts";
import { validateContainerResources } from "../../core/resources/validation.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { dns1123Label, validateName } from "../../meta/validation/names.ts";
import { validateLabels } from "../../meta/validation/object-meta.ts";
import { type RuntimeClass, runtimeClass } from "./schema.ts";

function validateRuntimeClass({ handler, overhead, scheduling }: RuntimeClass): readonly FieldError[] {
  const { nodeSelector, tolerations = [] } = scheduling ?? {};
  return [
    ...validateName("handler", handler, dns1123Label),
    // What a pod costs beside its containers is judged like the limits of one.
    ...validateContainerResources({ limits: overhead?.podFixed }, "overhead"),
    ...validateLabels(nodeSelector, "scheduling.nodeSelector"),
    ...validateTolerations(tolerations, "scheduling.tolerations.tolerations"),
    ...repeatedTolerations(tolerations, "scheduling.tolerations"),
  ];
}

/** How long one lasts does not make it another. */
function repeatedTolerations(tolerations: readonly Toleration[], path: string): readonly FieldError[] {
  const bare = tolerations.map(({ tolerationSeconds: _, ...rest }) => rest);
  return bare.flatMap((one, i) =>
    bare.slice(0, i).some((other) => deepEqual(other, one)) ? [duplicateField(index(path, i), tolerations[i])] : [],
  );
}

function runtimeClassWarnings({ scheduling }: RuntimeClass): readonly string[] {
  return Object.keys(scheduling?.nodeSelector ?? {}).flatMap((label) => {
    const renamed = labelDeprecation(label);
    return renamed === undefined ? [] : [`scheduling.nodeSelector: ${renamed}`];
  });
}

export const runtimeClassKind: Kind<RuntimeClass> = {
  group: "node.svc.io",
  version: "v1",
  kind: "RuntimeClass",
  listKind: "RuntimeClassList",
  plural: "runtimeclasses",
  singular: "runtimeclass",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "runtimeclasses",
  schema: runtimeClass,
  columns: [nameColumn, column("Handler", ({ handler }) => handler, "What runs the pods of the class."), ageColumn],
  selectableFields: {},
  allowsAnyFinalizer: true,
  strategy: {
    allowUnconditionalUpdate: false,
    validate: validateRuntimeClass,
    warnings: runtimeClassWarnings,
    validateUpdate: (next, previous) =>
      next.handler === previous.handler ? [] : [invalidField("handler", next.handler, "field is immutable")],
  },
};
