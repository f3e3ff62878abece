import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { compareQuantityTexts } from "../../meta/quantity.ts";
import { validateImmutableField } from "../../meta/validation/immutable.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import type { CSIStorageCapacity } from "./schema.ts";

export function validateCSIStorageCapacity(
  object: CSIStorageCapacity,
  previous?: CSIStorageCapacity,
): readonly FieldError[] {
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

/** The topology and the storage class are immutable; only the capacity changes. */
export function validateCSIStorageCapacityUpdate(
  next: CSIStorageCapacity,
  previous: CSIStorageCapacity,
): readonly FieldError[] {
  return [
    ...validateImmutableField(next.nodeTopology, previous.nodeTopology, "nodeTopology", labelSelector),
    ...validateImmutableField(next.storageClassName, previous.storageClassName, "storageClassName"),
  ];
}
