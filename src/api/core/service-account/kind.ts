import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type ServiceAccount, serviceAccount } from "./schema.ts";
import { serviceAccountStrategy } from "./strategy.ts";

export const serviceAccountKind: Kind<ServiceAccount> = {
  group: "",
  version: "v1",
  kind: "ServiceAccount",
  listKind: "ServiceAccountList",
  plural: "serviceaccounts",
  singular: "serviceaccount",
  shortNames: ["sa"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  returnsDeletedObject: true,
  subresources: [
    { name: "token", kind: "TokenRequest", group: "authentication.svc.io", version: "v1", verbs: ["create"] },
  ],
  storageName: "serviceaccounts",
  schema: serviceAccount,
  columns: [nameColumn, column("Secrets", (object) => (object.secrets ?? []).length), ageColumn],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "metadata", "spec"],
  strategy: serviceAccountStrategy,
};
