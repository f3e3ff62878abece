import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type CSIDriver, csiDriver } from "./csi-driver.ts";

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
  subresources: [],
  storageName: "csidrivers",
  schema: csiDriver,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
