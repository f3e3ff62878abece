import { requiredField } from "../../../schema/validation/field-error.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateNonNegative } from "../../meta/validation/bounds.ts";
import { validateImmutableField } from "../../meta/validation/immutable.ts";
import { parseApiVersion } from "../../scheme.ts";
import { type ControllerRevision, controllerRevision } from "./schema.ts";

const controllerRevisionStrategy: Strategy<ControllerRevision> = {
  // An update that takes the data away changes it, and is told that only.
  validate: ({ data, revision }, previous) => [
    ...(previous === undefined && (data ?? undefined) === undefined
      ? [requiredField("data", "data is mandatory")]
      : []),
    ...validateNonNegative(revision, "revision"),
  ],
  validateUpdate: (next, previous) => validateImmutableField(next.data, previous.data, "data"),
};

/** `daemonset.apps/fluentd`: whose past the revision keeps. */
function controllerOf({ metadata }: ControllerRevision): string {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined) return "<none>";
  const group = parseApiVersion(owner.apiVersion)?.group ?? "";
  return `${`${owner.kind}${group === "" ? "" : `.${group}`}`.toLowerCase()}/${owner.name}`;
}

export const controllerRevisionKind: Kind<ControllerRevision> = {
  group: "apps",
  version: "v1",
  kind: "ControllerRevision",
  listKind: "ControllerRevisionList",
  plural: "controllerrevisions",
  singular: "controllerrevision",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "controllerrevisions",
  schema: controllerRevision,
  columns: [
    nameColumn,
    column("Controller", controllerOf, "Whose past it keeps."),
    column("Revision", ({ revision }) => revision, "Counts up with each change of the controller's template."),
    ageColumn,
  ],
  selectableFields: {},
  strategy: controllerRevisionStrategy,
};
