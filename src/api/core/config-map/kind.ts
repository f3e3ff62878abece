import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type ConfigMap, configMap } from "./schema.ts";
import { configMapStrategy } from "./strategy.ts";

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
  columns: [nameColumn, column("Data", count), ageColumn],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "metadata", "spec"],
  strategy: configMapStrategy,
};
