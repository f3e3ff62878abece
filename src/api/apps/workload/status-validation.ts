import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";

/** Rules for the status of ReplicaSets and ReplicationControllers. */
export interface ReplicaStatus {
  readonly replicas: number;
  readonly fullyLabeledReplicas?: number | undefined;
  readonly readyReplicas?: number | undefined;
  readonly availableReplicas?: number | undefined;
  readonly terminatingReplicas?: number | undefined;
  readonly observedGeneration?: number | undefined;
}

const PARTS = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] as const;

/** No count exceeds `replicas`, and available replicas are ready. */
export function validateReplicaStatus(status: ReplicaStatus | undefined): readonly FieldError[] {
  if (status === undefined) return [];
  const { replicas, readyReplicas = 0, availableReplicas = 0 } = status;
  return [
    ...validateNonNegativeFields(status, "status", ["replicas", ...PARTS, "observedGeneration", "terminatingReplicas"]),
    ...PARTS.filter((name) => (status[name] ?? 0) > replicas).map((name) =>
      invalidField(`status.${name}`, status[name], "cannot be greater than status.replicas"),
    ),
    ...(availableReplicas > readyReplicas
      ? [invalidField("status.availableReplicas", availableReplicas, "cannot be greater than readyReplicas")]
      : []),
  ];
}
