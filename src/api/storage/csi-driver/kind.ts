import { ageColumn, booleanColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type CSIDriver, csiDriver } from "./schema.ts";
import { csiDriverStrategy } from "./strategy.ts";

export const csiDriverKind: Kind<CSIDriver> = {
  group: "storage.svc.io",
  version: "v1",
  kind: "CSIDriver",
  listKind: "CSIDriverList",
  plural: "csidrivers",
  singular: "csidriver",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  returnsDeletedObject: true,
  subresources: [],
  storageName: "csidrivers",
  schema: csiDriver,
  columns: [
    nameColumn,
    booleanColumn("AttachRequired", ({ spec }) => spec.attachRequired ?? true),
    booleanColumn("PodInfoOnMount", ({ spec }) => spec.podInfoOnMount ?? false),
    booleanColumn("StorageCapacity", ({ spec }) => spec.storageCapacity ?? false),
    column(
      "TokenRequests",
      ({ spec }) => (spec.tokenRequests ?? []).map(({ audience }) => audience).join(",") || "<unset>",
    ),
    booleanColumn("RequiresRepublish", ({ spec }) => spec.requiresRepublish ?? false),
    column("Modes", ({ spec }) => (spec.volumeLifecycleModes ?? []).join(",") || "<none>"),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: csiDriverStrategy,
};
