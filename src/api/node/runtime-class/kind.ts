import { invalidField } from "../../../schema/validation/field-error.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type RuntimeClass, runtimeClass } from "./schema.ts";
import { validateRuntimeClass } from "./validation.ts";
import { runtimeClassWarnings } from "./warnings.ts";

export const runtimeClassKind: Kind<RuntimeClass> = {
  group: "node.svc.io",
  version: "v1",
  kind: "RuntimeClass",
  listKind: "RuntimeClassList",
  plural: "runtimeclasses",
  singular: "runtimeclass",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "runtimeclasses",
  schema: runtimeClass,
  columns: [nameColumn, column("Handler", ({ handler }) => handler), ageColumn],
  selectableFields: {},
  allowsAnyFinalizer: true,
  strategy: {
    allowUnconditionalUpdate: false,
    validate: validateRuntimeClass,
    warnings: runtimeClassWarnings,
    validateUpdate: (next, previous) =>
      next.handler === previous.handler ? [] : [invalidField("handler", next.handler, "field is immutable")],
  },
};
