/** What is done to pods, or demanded of them, when they are created. */
import type { Container } from "../api/core/container.ts";
import type { Pod, PodSpec } from "../api/core/pod.ts";
import { invalid } from "../api/status.ts";
import { type FieldError, forbiddenField, renderFieldError } from "../schema/field-error.ts";
import type { Admit } from "./create.ts";

export interface PodAdmission {
  readonly allowPrivileged: boolean;
  /** How long pods stay on a node that is in trouble, unless they say themselves. */
  readonly notReadySeconds: number;
  readonly unreachableSeconds: number;
}

export function podAdmission(settings: PodAdmission): Admit {
  const tolerated = [
    ["node.kubernetes.io/not-ready", settings.notReadySeconds],
    ["node.kubernetes.io/unreachable", settings.unreachableSeconds],
  ] as const;
  return async (scope, object) => {
    const pod = object as Pod;
    const spec = pod.spec;
    if (spec === undefined) return undefined;
    const errors = settings.allowPrivileged ? [] : privileged(spec);
    if (errors.length > 0) {
      const subject = { group: scope.group, resource: "Pod", name: pod.metadata?.name ?? "" };
      throw invalid(subject, errors, renderFieldError);
    }
    const missing = tolerated.filter(([key]) => !tolerates(spec, key));
    if (missing.length === 0) return undefined;
    const added = missing.map(([key, tolerationSeconds]) => ({
      key,
      operator: "Exists" as const,
      effect: "NoExecute" as const,
      tolerationSeconds,
    }));
    return { ...pod, spec: { ...spec, tolerations: [...(spec.tolerations ?? []), ...added] } };
  };
}

function tolerates({ tolerations = [] }: PodSpec, key: string): boolean {
  return tolerations.some((each) => (each.key === key || !each.key) && (each.effect === "NoExecute" || !each.effect));
}

function privileged(spec: PodSpec): readonly FieldError[] {
  const of = (field: string, containers: readonly Pick<Container, "securityContext">[] = []): FieldError[] =>
    containers.flatMap(({ securityContext }, index) => {
      if (securityContext?.privileged !== true) return [];
      const path = `spec.${field}[${index}].securityContext.privileged`;
      return [forbiddenField(path, "disallowed by cluster policy")];
    });
  return [...of("containers", spec.containers), ...of("initContainers", spec.initContainers)];
}
