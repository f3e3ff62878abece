import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import type { Container } from "../container/schema.ts";
import { type PodTemplate, podTemplate, podTemplateSpec } from "./schema.ts";
import { podTemplateWarnings, setPodTemplateDefaults, validatePodTemplateSpec } from "./validation.ts";

const podTemplateStrategy: Strategy<PodTemplate> = {
  setDefaults: (object) => ({ ...object, template: setPodTemplateDefaults(object.template ?? {}) }),
  prepareForUpdate: (next, previous) => {
    const before = previous.metadata?.generation ?? 0;
    const changed = !semanticEqual(podTemplateSpec, next.template, previous.template);
    const generation = changed ? before + 1 : before;
    return generation === 0 ? next : { ...next, metadata: { ...next.metadata, generation } };
  },
  prepareForCreate: (object) => ({ ...object, metadata: { ...object.metadata, generation: 1 } }),
  validate: (object) => validatePodTemplateSpec(object.template ?? {}, "template"),
  warnings: (object, previous) => {
    const unchanged = previous !== undefined && previous.metadata?.generation === object.metadata?.generation;
    return unchanged ? [] : podTemplateWarnings(object.template ?? {}, "template");
  },
};

function containers(object: PodTemplate): readonly Container[] {
  return object.template?.spec?.containers ?? [];
}

function labels(object: PodTemplate): string {
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
  subresources: [],
  storageName: "podtemplates",
  schema: podTemplate,
  columns: [
    nameColumn,
    column("Containers", (object) =>
      containers(object)
        .map(({ name }) => name)
        .join(","),
    ),
    column("Images", (object) =>
      containers(object)
        .map(({ image = "" }) => image)
        .join(","),
    ),
    column("Pod Labels", labels),
  ],
  selectableFields: {},
  strategy: podTemplateStrategy,
};
