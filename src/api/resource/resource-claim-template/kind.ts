import { type FieldError, forbiddenField } from "../../../schema/validation/field-error.ts";
import { ageColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { validateImmutableField } from "../../meta/validation/immutable.ts";
import { validateAnnotations, validateLabels } from "../../meta/validation/object-meta.ts";
import { storedTemplates } from "../flat-versions/stored.ts";
import { setDeviceDefaults } from "../resource-claim/strategy.ts";
import { validateDeviceClaim } from "../resource-claim/validation.ts";
import { type ResourceClaimTemplate, resourceClaimTemplate } from "../schemas.ts";

export const resourceClaimTemplateKind: Kind<ResourceClaimTemplate> = {
  group: "resource.svc.io",
  version: "v1beta2",
  since: "1.33",
  storageVersion: "v1beta1",
  storedVersions: storedTemplates,
  kind: "ResourceClaimTemplate",
  listKind: "ResourceClaimTemplateList",
  plural: "resourceclaimtemplates",
  singular: "resourceclaimtemplate",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "resourceclaimtemplates",
  schema: resourceClaimTemplate,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: {
    setDefaults: (template) => {
      const { spec } = template.spec;
      if (spec.devices === undefined) return template;
      const claim = { ...spec, devices: setDeviceDefaults(spec.devices) };
      return { ...template, spec: { ...template.spec, spec: claim } };
    },
    validate: (template, previous) => (previous === undefined ? validateTemplate(template, false) : []),
    validateUpdate: (next, previous) => [
      ...validateImmutableField(next.spec, previous.spec, "spec"),
      ...validateTemplate(next, true),
    ],
  },
};

/** A template may set only labels and annotations of its claims. */
function validateTemplate(
  { spec: { metadata = {}, spec } }: ResourceClaimTemplate,
  isStored: boolean,
): readonly FieldError[] {
  const { annotations, labels, ...others } = metadata;
  return [
    ...validateAnnotations(annotations, "spec.metadata.annotations"),
    ...validateLabels(labels, "spec.metadata.labels"),
    ...Object.entries(others)
      .filter(([, value]) => value !== undefined && value !== null && value !== "")
      .map(([name]) => forbiddenField(`spec.metadata.${name}`, "cannot be set")),
    ...validateDeviceClaim(spec.devices, "spec.spec.devices", isStored),
  ];
}
