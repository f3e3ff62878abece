import { scaleSubresource } from "../../autoscaling/scale/kind.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { dns1123Label } from "../../meta/validation/names.ts";
import { statusSubresource } from "../../strategy.ts";
import { containerColumns } from "../workload/columns.ts";
import { type StatefulSet, statefulSet } from "./schema.ts";
import { statefulSetStrategy } from "./strategy.ts";
import { validateStatefulSetStatus } from "./validation.ts";

export const statefulSetKind: Kind<StatefulSet> = {
  group: "apps",
  version: "v1",
  kind: "StatefulSet",
  listKind: "StatefulSetList",
  plural: "statefulsets",
  singular: "statefulset",
  shortNames: ["sts"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    scaleSubresource(({ spec }) => spec?.selector),
    statusSubresource("StatefulSet", { validateUpdate: validateStatefulSetStatus }),
  ],
  storageName: "statefulsets",
  schema: statefulSet,
  columns: [
    nameColumn,
    column("Ready", ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`),
    ageColumn,
    ...containerColumns<StatefulSet>((object) => object.spec?.template),
  ],
  selectableFields: {},
  nameFormat: dns1123Label,
  updateChecks: ["metadataUpdate", "spec"],
  strategy: statefulSetStrategy,
};
