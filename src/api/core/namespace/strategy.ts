import { validateEach } from "../../../schema/validation/field-error.ts";
import type { Strategy } from "../../kind.ts";
import { validateFinalizer, validateLabels } from "../../meta/validation/object-meta.ts";
import { keepStatus } from "../../strategy.ts";
import { validatePodSecurityLabels } from "./pod-security-labels.ts";
import type { Namespace } from "./schema.ts";

const FINALIZER = "kubernetes";

const NAME_LABEL = "kubernetes.io/metadata.name";

export const namespaceStrategy: Strategy<Namespace> = {
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
  // Only the finalize subresource changes the spec.
  prepareForUpdate: (next, previous) => ({ ...keepStatus(next, previous), spec: previous.spec }),
  validate: (object, previous) => {
    const { labels } = object.metadata ?? {};
    const finalizers = object.spec?.finalizers ?? [];
    const errors = validateEach(finalizers, (finalizer) => validateFinalizer(finalizer, "spec.finalizers"));
    // A plugin checks them in Kubernetes, which sees valid objects only.
    const isValid = errors.length === 0 && validateLabels(labels).length === 0;
    return isValid ? validatePodSecurityLabels(labels, previous?.metadata?.labels) : errors;
  },
  hasSpecFinalizers: ({ spec }) => (spec?.finalizers ?? []).length > 0,
};
