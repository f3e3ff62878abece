import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type Secret, secret } from "./schema.ts";
import { secretStrategy } from "./strategy.ts";

export const secretKind: Kind<Secret> = {
  group: "",
  version: "v1",
  kind: "Secret",
  listKind: "SecretList",
  plural: "secrets",
  singular: "secret",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "secrets",
  schema: secret,
  columns: [
    nameColumn,
    column("Type", (object) => object.type ?? ""),
    column("Data", (object) => Object.keys(object.data ?? {}).length),
    ageColumn,
  ],
  selectableFields: { type: (object) => object.type ?? "" },
  updateChecks: ["metadataUpdate", "metadata", "spec"],
  strategy: secretStrategy,
};
