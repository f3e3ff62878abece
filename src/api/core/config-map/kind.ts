import { invalidField } from "../../../schema/validation/field-error.ts";
import { key } from "../../../schema/value/field-path.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { decodedBytes, textBytes, validateImmutable, validateKeys, validateSize } from "./data-validation.ts";
import { type ConfigMap, configMap } from "./schema.ts";

const configMapStrategy: Strategy<ConfigMap> = {
  validate: (object) => [
    ...validateKeys(object.data, "data"),
    ...validateKeys(object.binaryData, "binaryData"),
    ...Object.keys(object.binaryData ?? {})
      .filter((name) => object.data?.[name] !== undefined)
      .map((name) => invalidField(key("data", name), name, "duplicate of key present in binaryData")),
    ...validateSize(textBytes(object.data) + decodedBytes(object.binaryData), ""),
  ],
  validateUpdate: (next, previous) => validateImmutable(next, previous, ["data", "binaryData"]),
};

function count(object: ConfigMap): number {
  return Object.keys(object.data ?? {}).length + Object.keys(object.binaryData ?? {}).length;
}

export const configMapKind: Kind<ConfigMap> = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  listKind: "ConfigMapList",
  plural: "configmaps",
  singular: "configmap",
  shortNames: ["cm"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "configmaps",
  schema: configMap,
  columns: [nameColumn, column("Data", count, "How many keys it holds."), ageColumn],
  selectableFields: {},
  strategy: configMapStrategy,
};
