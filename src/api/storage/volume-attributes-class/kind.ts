import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type VolumeAttributesClass, volumeAttributesClass } from "./schema.ts";
import { validateAttributesClass, validateAttributesClassUpdate } from "./validation.ts";

export const volumeAttributesClassKind: Kind<VolumeAttributesClass> = {
  group: "storage.svc.io",
  version: "v1beta1",
  since: "1.31",
  kind: "VolumeAttributesClass",
  listKind: "VolumeAttributesClassList",
  plural: "volumeattributesclasses",
  singular: "volumeattributesclass",
  shortNames: ["vac"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  returnsDeletedObject: true,
  subresources: [],
  storageName: "volumeattributesclasses",
  schema: volumeAttributesClass,
  columns: [nameColumn, column("DriverName", (object) => object.driverName), ageColumn],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "change", "metadata", "spec"],
  strategy: { validate: validateAttributesClass, validateUpdate: validateAttributesClassUpdate },
};
