import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateNonNegative } from "../../meta/validation/bounds.ts";
import { type Lease, lease } from "./schema.ts";

function validateLease({ spec = {} }: Lease): readonly FieldError[] {
  const { leaseDurationSeconds, leaseTransitions } = spec;
  const brief = leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0;
  return [
    ...(brief ? [invalidField("spec.leaseDurationSeconds", leaseDurationSeconds, "must be greater than 0")] : []),
    ...validateNonNegative(leaseTransitions, "spec.leaseTransitions"),
  ];
}

/** Who leads is not yet chosen by the server: 1.33 leaves CoordinatedLeaderElection switched off. */
function dropDisabledFields(object: Lease): Lease {
  if (object.spec === undefined) return object;
  const { strategy: _, preferredHolder: __, ...spec } = object.spec;
  return { ...object, spec };
}

const leaseStrategy: Strategy<Lease> = {
  prepareForCreate: dropDisabledFields,
  prepareForUpdate: dropDisabledFields,
  validate: validateLease,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
};

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
  allowsAnyFinalizer: true,
  columns: [nameColumn, column("Holder", (object) => object.spec?.holderIdentity ?? ""), ageColumn],
  selectableFields: {},
  strategy: leaseStrategy,
};
