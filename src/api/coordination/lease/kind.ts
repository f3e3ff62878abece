import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type Lease, lease } from "./schema.ts";
import { leaseStrategy } from "./strategy.ts";

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
  updateChecks: ["metadataUpdate", "spec"],
  strategy: leaseStrategy,
};
