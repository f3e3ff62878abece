import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { parseApiVersion } from "../../scheme.ts";
import { type ControllerRevision, controllerRevision } from "./schema.ts";
import { controllerRevisionStrategy } from "./strategy.ts";

/** The controller of the revision: `daemonset.apps/fluentd`. */
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
  columns: [nameColumn, column("Controller", controllerOf), column("Revision", ({ revision }) => revision), ageColumn],
  selectableFields: {},
  strategy: controllerRevisionStrategy,
};
