import { column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import type { Container } from "../container/schema.ts";
import { type PodTemplate, podTemplate } from "./schema.ts";
import { podTemplateStrategy } from "./strategy.ts";

function containersOf(object: PodTemplate): readonly Container[] {
  return object.template?.spec?.containers ?? [];
}

function labelsText(object: PodTemplate): string {
  const pairs = Object.entries(object.template?.metadata?.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? "<none>" : pairs.sort().join(",");
}

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
  returnsDeletedObject: true,
  subresources: [],
  storageName: "podtemplates",
  schema: podTemplate,
  columns: [
    nameColumn,
    column("Containers", (object) =>
      containersOf(object)
        .map(({ name }) => name)
        .join(","),
    ),
    column("Images", (object) =>
      containersOf(object)
        .map(({ image = "" }) => image)
        .join(","),
    ),
    column("Pod Labels", labelsText),
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: podTemplateStrategy,
};
