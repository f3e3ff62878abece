/**
 * What is done to pods, or demanded of them, before they are created or changed: privileges, priority, the class of
 * their runtime, how long they stay on a node in trouble.
 */
import type { Pod, PodSpec } from "../api/core/pod.ts";
import { eachContainer, type PlacedContainer } from "../api/core/pod-containers.ts";
import { podKind } from "../api/core/pod-kind.ts";
import { invalid } from "../api/status.ts";
import { type FieldError, forbiddenField, renderFieldError } from "../schema/field-error.ts";
import type { Admit } from "./create.ts";
import { keepPriority, type PriorityClasses, withPriority } from "./pod-priority.ts";
import { type RuntimeClasses, withRuntimeClass } from "./pod-runtime-class.ts";
import type { AdmitChange, Scope } from "./registry.ts";

export interface PodAdmission {
  readonly allowPrivileged: boolean;
  /** How long pods stay on a node that is in trouble, unless they say themselves. */
  readonly notReadySeconds: number;
  readonly unreachableSeconds: number;
}

/** What new pods are looked up in. */
export interface PodClasses {
  readonly priority: PriorityClasses;
  readonly runtime: RuntimeClasses;
}

/** Resolves with the pod as it is to be written. Throws 403 or 422. */
export function podAdmission(settings: PodAdmission, classes: PodClasses): Admit {
  return async (scope, object) => {
    const pod = object as Pod;
    if (pod.spec === undefined) return undefined;
    refusePrivileged(settings, scope, pod, pod.spec);
    const ranked = await withPriority(pod.spec, scope, pod, classes.priority);
    const tolerant = withTolerations(ranked, settings);
    const spec = await withRuntimeClass(tolerant, scope, pod, classes.runtime);
    return { ...pod, spec };
  };
}

/**
 * What a client took away of a pod that was filled in when the pod was made is filled in again. Throws 422 for
 * containers that come to a pod with privileges that nobody may have.
 */
export function podChangeAdmission(settings: PodAdmission): AdmitChange {
  return (kind, next, previous, inPart) => {
    if (kind.plural !== podKind.plural || kind.group !== podKind.group) return next;
    const { spec } = next as Pod;
    const { spec: old } = previous as Pod;
    if (spec === undefined || old === undefined) return next;
    const { ephemeralContainers: known = [] } = old;
    const added = (spec.ephemeralContainers ?? []).filter(({ name }) => known.every((one) => one.name !== name));
    refusePrivileged(settings, kind, next, { containers: [], ephemeralContainers: added });
    return inPart ? next : ({ ...next, spec: withTolerations(keepPriority(spec, old), settings) } as Pod);
  };
}

function withTolerations(spec: PodSpec, settings: PodAdmission): PodSpec {
  const wanted = [
    ["node.kubernetes.io/not-ready", settings.notReadySeconds],
    ["node.kubernetes.io/unreachable", settings.unreachableSeconds],
  ] as const;
  const missing = wanted.filter(([key]) => !tolerates(spec, key));
  if (missing.length === 0) return spec;
  const added = missing.map(([key, tolerationSeconds]) => ({
    key,
    operator: "Exists" as const,
    effect: "NoExecute" as const,
    tolerationSeconds,
  }));
  return { ...spec, tolerations: [...(spec.tolerations ?? []), ...added] };
}

function tolerates({ tolerations = [] }: PodSpec, key: string): boolean {
  return tolerations.some((each) => (each.key === key || !each.key) && (each.effect === "NoExecute" || !each.effect));
}

function refusePrivileged(settings: PodAdmission, { group }: Pick<Scope, "group">, pod: Pod, spec: PodSpec): void {
  if (settings.allowPrivileged) return;
  const errors = privileged(spec);
  if (errors.length === 0) return;
  const subject = { group, resource: "Pod", name: pod.metadata?.name ?? "" };
  throw invalid(subject, errors, renderFieldError);
}

function privileged(spec: PodSpec): readonly FieldError[] {
  const detail = "disallowed by cluster policy";
  const hostProcess = spec.securityContext?.windowsOptions?.hostProcess === true;
  return [
    ...eachContainer(spec, "spec")
      .filter(({ container }) => container.securityContext?.privileged === true)
      .map(({ at }) => forbiddenField(`${at}.securityContext.privileged`, detail)),
    ...(hostProcess || eachContainer(spec, "").some(isHostProcess)
      ? [forbiddenField("spec", `hostProcess containers are ${detail}`)]
      : []),
  ];
}

function isHostProcess({ container }: PlacedContainer): boolean {
  return container.securityContext?.windowsOptions?.hostProcess === true;
}
