import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type IngressClass, ingressClass } from "./schema.ts";
import { ingressClassStrategy } from "./strategy.ts";

function parametersText({ spec }: IngressClass): string {
  if (spec?.parameters === undefined) return "<none>";
  const { apiGroup, kind, name } = spec.parameters;
  return `${apiGroup ? `${kind}.${apiGroup}` : kind}/${name}`;
}

export const ingressClassKind: Kind<IngressClass> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "IngressClass",
  listKind: "IngressClassList",
  plural: "ingressclasses",
  singular: "ingressclass",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "ingressclasses",
  schema: ingressClass,
  columns: [
    nameColumn,
    column("Controller", ({ spec }) => spec?.controller ?? ""),
    column("Parameters", parametersText),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "change", "metadata", "spec"],
  strategy: ingressClassStrategy,
};
