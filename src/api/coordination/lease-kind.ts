import { type FieldError, invalidField, requiredField } from "../../schema/field-error.ts";
import { ageColumn, column, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type Lease, lease } from "./lease.ts";

function validate(object: Lease): readonly FieldError[] {
  const errors: FieldError[] = [];
  const { holderIdentity, leaseDurationSeconds, leaseTransitions } = object.spec ?? {};
  if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
    errors.push(invalidField("spec.leaseDurationSeconds", leaseDurationSeconds, "must be greater than 0"));
  }
  if (leaseTransitions !== undefined && leaseTransitions < 0) {
    errors.push(invalidField("spec.leaseTransitions", leaseTransitions, "must be greater than or equal to 0"));
  }
  if (holderIdentity === "") errors.push(requiredField("spec.holderIdentity", "must not be empty"));
  return errors;
}

export const leaseKind: Kind<Lease> = {
  group: "coordination.svc.io",
  version: "v1",
  kind: "Lease",
  listKind: "LeaseList",
  plural: "leases",
  singular: "lease",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "leases",
  schema: lease,
  columns: [nameColumn, column("Holder", (object) => object.spec?.holderIdentity ?? ""), ageColumn],
  selectableFields: {},
  strategy: { validate, allowCreateOnUpdate: true, allowUnconditionalUpdate: false },
};
