import { key } from "../../../schema/value/field-path.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { type ServiceAccount, serviceAccount } from "./schema.ts";

const ENFORCE = "kubernetes.io/enforce-mountable-secrets";

const serviceAccountStrategy: Strategy<ServiceAccount> = {
  prepareForCreate: keepSecretNamesOnly,
  prepareForUpdate: keepSecretNamesOnly,
  warnings: ({ metadata }, previous) => {
    const said = previous?.metadata?.annotations?.[ENFORCE] !== undefined;
    if (metadata?.annotations?.[ENFORCE] === undefined || said) return [];
    const instead = "prefer separate namespaces to isolate access to mounted secrets";
    return [`${key("metadata.annotations", ENFORCE)}: deprecated in v1.32+; ${instead}`];
  },
};

/** Secrets are the account's own namespace's: only their names count. */
function keepSecretNamesOnly(object: ServiceAccount): ServiceAccount {
  if (object.secrets === undefined) return object;
  return { ...object, secrets: object.secrets.map(({ name }) => (name === undefined ? {} : { name })) };
}

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
  subresources: [
    { name: "token", kind: "TokenRequest", group: "authentication.svc.io", version: "v1", verbs: ["create"] },
  ],
  storageName: "serviceaccounts",
  schema: serviceAccount,
  columns: [nameColumn, column("Secrets", (object) => (object.secrets ?? []).length), ageColumn],
  selectableFields: {},
  strategy: serviceAccountStrategy,
};
