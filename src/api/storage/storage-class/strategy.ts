import { child, index } from "../../../schema/value/field-path.ts";
import { labelDeprecation } from "../../core/node/deprecated-labels.ts";
import type { Strategy } from "../../kind.ts";
import type { StorageClass } from "./schema.ts";
import { validateStorageClass, validateStorageClassUpdate } from "./validation.ts";

export const storageClassStrategy: Strategy<StorageClass> = {
  setDefaults: (object) => ({
    ...object,
    reclaimPolicy: object.reclaimPolicy ?? "Delete",
    volumeBindingMode: object.volumeBindingMode ?? "Immediate",
  }),
  validate: validateStorageClass,
  validateUpdate: validateStorageClassUpdate,
  warnings: ({ allowedTopologies = [] }) =>
    allowedTopologies.flatMap(({ matchLabelExpressions = [] }, i) =>
      matchLabelExpressions.flatMap(({ key }, j) => {
        const at = index(child(index("allowedTopologies", i), "matchLabelExpressions"), j);
        const renamed = labelDeprecation(key);
        return renamed === undefined ? [] : [`${child(at, "key")}: ${renamed}`];
      }),
    ),
};
