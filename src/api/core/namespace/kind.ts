import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import type { Kind } from "../../kind.ts";
import { dns1123Label } from "../../meta/validation/names.ts";
import { keepStatus, statusSubresource } from "../../strategy.ts";
import { type Namespace, namespace } from "./schema.ts";
import { namespaceStrategy } from "./strategy.ts";
import { validateNamespaceFinalize, validateNamespaceStatusUpdate } from "./validation.ts";

export const namespaceKind: Kind<Namespace> = {
  group: "",
  version: "v1",
  kind: "Namespace",
  listKind: "NamespaceList",
  plural: "namespaces",
  singular: "namespace",
  shortNames: ["ns"],
  categories: [],
  namespaced: false,
  verbs: ["create", "delete", "get", "list", "patch", "update", "watch"],
  subresources: [
    {
      name: "finalize",
      kind: "Namespace",
      verbs: ["update"],
      strategy: { prepareForUpdate: keepStatus, validateUpdate: validateNamespaceFinalize, resetFields: [["status"]] },
    },
    statusSubresource("Namespace", { validateUpdate: validateNamespaceStatusUpdate }),
  ],
  storageName: "namespaces",
  schema: namespace,
  columns: [nameColumn, column("Status", (object) => object.status?.phase ?? ""), ageColumn],
  selectableFields: { "status.phase": (object) => object.status?.phase ?? "" },
  strategy: namespaceStrategy,
  nameFormat: dns1123Label,
};
