import { ageColumn, column, nameColumn } from "../columns.ts";
import type { Kind, Strategy } from "../kind.ts";
import { dns1123Label } from "../meta/names.ts";
import { validateFinalizer } from "../meta/object-meta-validation.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type Namespace, namespace } from "./namespace.ts";

const FINALIZER = "kubernetes";
const NAME_LABEL = "kubernetes.io/metadata.name";

const strategy: Strategy<Namespace> = {
  setDefaults: (object) => {
    const name = object.metadata?.name;
    if (!name || object.metadata?.labels?.[NAME_LABEL] === name) return object;
    return { ...object, metadata: { ...object.metadata, labels: { ...object.metadata?.labels, [NAME_LABEL]: name } } };
  },
  prepareForCreate: (object) => ({
    ...object,
    spec: { finalizers: [...new Set([...(object.spec?.finalizers ?? []), FINALIZER])] },
    status: { phase: "Active" },
  }),
  // Finalizers of the spec are changed through the finalize subresource only.
  prepareForUpdate: (next, previous) => ({ ...keepStatus(next, previous), spec: previous.spec }),
  validate: (object) =>
    (object.spec?.finalizers ?? []).flatMap((finalizer) => validateFinalizer(finalizer, "spec.finalizers")),
};

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
    { name: "finalize", kind: "Namespace", verbs: ["update"], part: { prepareForUpdate: keepStatus } },
    statusSubresource("Namespace"),
  ],
  storageName: "namespaces",
  schema: namespace,
  columns: [nameColumn, column("Status", (object) => object.status?.phase ?? ""), ageColumn],
  selectableFields: { "status.phase": (object) => object.status?.phase ?? "" },
  strategy,
  nameForm: dns1123Label,
};
