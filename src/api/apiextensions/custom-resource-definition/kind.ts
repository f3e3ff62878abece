import { createdAtColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { type CustomResourceDefinition, customResourceDefinition } from "./schema.ts";
import { fromV1beta1 } from "./stored-v1beta1.ts";
import { customResourceDefinitionStrategy } from "./strategy.ts";
import { validateStatus } from "./validation.ts";

export const customResourceDefinitionKind: Kind<CustomResourceDefinition> = {
  group: "apiextensions.svc.io",
  version: "v1",
  kind: "CustomResourceDefinition",
  listKind: "CustomResourceDefinitionList",
  plural: "customresourcedefinitions",
  singular: "customresourcedefinition",
  shortNames: ["crd", "crds"],
  categories: ["api-extensions"],
  namespaced: false,
  verbs: allVerbs,
  subresources: [
    statusSubresource("CustomResourceDefinition", {
      validateUpdate: validateStatus,
      resetFields: [["metadata"], ["spec"]],
    }),
  ],
  storageName: "apiextensions.k8s.io/customresourcedefinitions",
  storageVersion: "v1beta1",
  storedVersions: { v1beta1: { convert: fromV1beta1 } },
  schema: customResourceDefinition,
  columns: [nameColumn, createdAtColumn],
  selectableFields: {},
  allowsAnyFinalizer: true,
  updateChecks: ["metadataUpdate", "spec"],
  strategy: customResourceDefinitionStrategy,
};
