import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import type { ApiObject } from "../../kind.ts";
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

interface WithTerminatingReplicas extends ApiObject {
  readonly status?: { readonly terminatingReplicas?: number | undefined } | undefined;
}

/** Drops `terminatingReplicas`, whose feature is off by default, unless the stored object has it. */
export function dropTerminatingReplicas<T extends WithTerminatingReplicas>(next: T, previous: T): T {
  if (next.status?.terminatingReplicas === undefined || previous.status?.terminatingReplicas !== undefined) return next;
  const { terminatingReplicas: _, ...status } = next.status;
  return { ...next, status };
}
