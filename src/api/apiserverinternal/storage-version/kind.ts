import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { formatList } from "../../columns/list-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { dropStatus, keepStatus, replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type StorageVersion, storageVersion } from "./schema.ts";
import { storageVersionName, validateStorageVersionStatus } from "./validation.ts";

export const storageVersionKind: Kind<StorageVersion> = {
  group: "internal.apiserver.svc.io",
  version: "v1alpha1",
  kind: "StorageVersion",
  listKind: "StorageVersionList",
  plural: "storageversions",
  singular: "storageversion",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [
    statusSubresource("StorageVersion", {
      prepareForUpdate: replaceStatusOnly,
      resetFields: [["metadata"], ["spec"]],
      validateUpdate: validateStorageVersionStatus,
    }),
  ],
  storageName: "storageversions",
  schema: storageVersion,
  nameFormat: storageVersionName,
  columns: [
    nameColumn,
    column("CommonEncodingVersion", ({ status }) => status?.commonEncodingVersion ?? "<unset>"),
    column("StorageVersions", ({ status }) =>
      formatList((status?.storageVersions ?? []).map((server) => `${server.apiServerID}=${server.encodingVersion}`)),
    ),
    ageColumn,
  ],
  selectableFields: {},
  strategy: { prepareForCreate: dropStatus, prepareForUpdate: keepStatus, allowUnconditionalUpdate: false },
};
