import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import type { Kind, Strategy } from "../../kind.ts";
import { dns1123Label } from "../../meta/validation/names.ts";
import { validateFinalizer } from "../../meta/validation/object-meta.ts";
import { keepStatus, statusSubresource } from "../../strategy.ts";
import { validatePodSecurityLabels } from "./pod-security-labels.ts";
import { type Namespace, namespace } from "./schema.ts";

const FINALIZER = "kubernetes";
const NAME_LABEL = "kubernetes.io/metadata.name";

const namespaceStrategy: Strategy<Namespace> = {
  setDefaults: (object) => {
    const name = object.metadata?.name;
    const phased = object.status?.phase
      ? object
      : { ...object, status: { ...object.status, phase: "Active" as const } };
    if (!name || object.metadata?.labels?.[NAME_LABEL] === name) return phased;
    return { ...phased, metadata: { ...object.metadata, labels: { ...object.metadata?.labels, [NAME_LABEL]: name } } };
  },
  prepareForCreate: (object) => ({
    ...object,
    spec: { finalizers: [...new Set([...(object.spec?.finalizers ?? []), FINALIZER])] },
    status: { phase: "Active" },
  }),
  // Finalizers of the spec are changed through the finalize subresource only.
  prepareForUpdate: (next, previous) => ({ ...keepStatus(next, previous), spec: previous.spec }),
  validate: (object, previous) => [
    ...(object.spec?.finalizers ?? []).flatMap((finalizer) => validateFinalizer(finalizer, "spec.finalizers")),
    ...validatePodSecurityLabels(object.metadata?.labels, previous?.metadata?.labels),
  ],
};

function validateNamespaceStatusUpdate({ metadata, status }: Namespace): readonly FieldError[] {
  const leaving = metadata?.deletionTimestamp !== undefined;
  const wanted = leaving ? "Terminating" : "Active";
  const phase = status?.phase ?? "";
  if (phase === wanted) return [];
  const when = leaving ? "is not empty" : "is empty";
  return [invalidField("status.Phase", phase, `may only be '${wanted}' if \`deletionTimestamp\` ${when}`)];
}

function validateNamespaceFinalize({ spec }: Namespace): readonly FieldError[] {
  return (spec?.finalizers ?? []).flatMap((finalizer, i) => validateFinalizer(finalizer, index("spec.finalizers", i)));
}

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
