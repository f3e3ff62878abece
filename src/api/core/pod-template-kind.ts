import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type PodTemplate, podTemplate } from "./pod-template.ts";

export const podTemplateKind: Kind<PodTemplate> = {
  group: "",
  version: "v1",
  kind: "PodTemplate",
  listKind: "PodTemplateList",
  plural: "podtemplates",
  singular: "podtemplate",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "podtemplates",
  schema: podTemplate,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
