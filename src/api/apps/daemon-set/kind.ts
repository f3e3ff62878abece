import { ageColumn, column, integerColumn, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabelSelector, formatLabels } from "../../columns/selector-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { containerColumns } from "../workload/columns.ts";
import { type DaemonSet, daemonSet } from "./schema.ts";
import { daemonSetStrategy } from "./strategy.ts";
import { validateDaemonSetStatus } from "./validation.ts";

export const daemonSetKind: Kind<DaemonSet> = {
  group: "apps",
  version: "v1",
  kind: "DaemonSet",
  listKind: "DaemonSetList",
  plural: "daemonsets",
  singular: "daemonset",
  shortNames: ["ds"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("DaemonSet", { validateUpdate: validateDaemonSetStatus })],
  storageName: "daemonsets",
  schema: daemonSet,
  columns: [
    nameColumn,
    integerColumn("Desired", ({ status }) => status?.desiredNumberScheduled ?? 0),
    integerColumn("Current", ({ status }) => status?.currentNumberScheduled ?? 0),
    integerColumn("Ready", ({ status }) => status?.numberReady ?? 0),
    integerColumn("Up-to-date", ({ status }) => status?.updatedNumberScheduled ?? 0),
    integerColumn("Available", ({ status }) => status?.numberAvailable ?? 0),
    column("Node Selector", ({ spec }) => formatLabels(spec?.template.spec?.nodeSelector)),
    ageColumn,
    ...containerColumns<DaemonSet>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabelSelector(object.spec?.selector)),
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadataUpdate", "spec"],
  strategy: daemonSetStrategy,
};
