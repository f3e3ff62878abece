import { ageColumn, column, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type ServiceAccount, serviceAccount } from "./service-account.ts";

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
  subresources: [],
  storageName: "serviceaccounts",
  schema: serviceAccount,
  columns: [nameColumn, column("Secrets", (object) => (object.secrets ?? []).length), ageColumn],
  selectableFields: {},
  strategy: {},
};
