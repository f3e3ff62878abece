import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { column, nameColumn } from "../../columns/columns.ts";
import { labelDeprecation } from "../../core/node/deprecated-labels.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { compareQuantityTexts } from "../../meta/quantity.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import { type CSIStorageCapacity, csiStorageCapacity } from "./schema.ts";

function validateCSIStorageCapacity(object: CSIStorageCapacity, previous?: CSIStorageCapacity): readonly FieldError[] {
  const allowBadValues = validateLabelSelector(previous?.nodeTopology, "").length > 0;
  return [
    ...validateLabelSelector(object.nodeTopology, "nodeTopology", { allowInvalidValues: allowBadValues }),
    ...validateName("storageClassName", object.storageClassName, dns1123Subdomain),
    ...validateCapacity(object.capacity),
  ];
}

function validateCapacity(amount: string | undefined): readonly FieldError[] {
  if (amount === undefined || compareQuantityTexts(amount, "0") >= 0) return [];
  return [invalidField("capacity", amount, "must be greater than or equal to 0")];
}

/** What is asked of the driver is settled; only its answers change. */
function validateCSIStorageCapacityUpdate(next: CSIStorageCapacity, previous: CSIStorageCapacity): readonly FieldError[] {
  return (["nodeTopology", "storageClassName"] as const)
    .filter((field) => !deepEqual(next[field], previous[field]))
    .map((field) => invalidField(field, next[field], "field is immutable"));
}

function csiStorageCapacityWarnings({ nodeTopology }: CSIStorageCapacity): readonly string[] {
  const { matchExpressions = [], matchLabels = {} } = nodeTopology ?? {};
  const warn = (label: string, text: (why: string) => string): readonly string[] => {
    const renamed = labelDeprecation(label);
    return renamed === undefined ? [] : [text(renamed)];
  };
  return [
    ...matchExpressions.flatMap(({ key: label }, i) =>
      warn(label, (why) => `${child(index("nodeTopology.matchExpressions", i), "key")}: ${label} is ${why}`),
    ),
    ...Object.keys(matchLabels).flatMap((label) => warn(label, (why) => `nodeTopology.matchLabels.${label}: ${why}`)),
  ];
}

export const csiStorageCapacityKind: Kind<CSIStorageCapacity> = {
  group: "storage.svc.io",
  version: "v1",
  kind: "CSIStorageCapacity",
  listKind: "CSIStorageCapacityList",
  plural: "csistoragecapacities",
  singular: "csistoragecapacity",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "csistoragecapacities",
  schema: csiStorageCapacity,
  columns: [
    nameColumn,
    column("StorageClassName", (object) => object.storageClassName, "The class the space is for."),
    column("Capacity", (object) => object.capacity ?? "<unset>", "How much space there is."),
  ],
  selectableFields: {},
  strategy: { allowUnconditionalUpdate: false, validate: validateCSIStorageCapacity, validateUpdate: validateCSIStorageCapacityUpdate, warnings: csiStorageCapacityWarnings },
};
