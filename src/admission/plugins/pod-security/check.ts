/** The interface of pod security checks, and helpers for their messages. */
import type { Container } from "../../../api/core/container/schema.ts";
import { containersWithPaths } from "../../../api/core/pod-spec/containers.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { ObjectMeta } from "../../../api/meta/object-meta.ts";

export interface CheckedPod {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  /** Feature gate `UserNamespacesPodSecurityStandards`: relaxes checks for pods with a user namespace. */
  readonly relaxUserNamespaces: boolean;
}

/** Kubernetes' reason and detail of a violation. */
export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

export type CheckPod = (pod: CheckedPod) => Violation | undefined;

export interface Check {
  readonly id: string;
  /** By the minor version that changed the rule, ascending. Before the first one there is no check. */
  readonly versions: readonly (readonly [minor: number, check: CheckPod])[];
  /** Baseline checks that this one includes. */
  readonly overrides?: readonly string[];
}

/** All containers, in the order in which they run. */
export function containersOf({ spec }: CheckedPod): readonly Container[] {
  return Array.from(containersWithPaths(spec, ""), ({ container }) => container);
}

export function namesWhere(pod: CheckedPod, isBad: (container: Container) => boolean): readonly string[] {
  return containersOf(pod)
    .filter(isBad)
    .map(({ name }) => name);
}

/** Whether the pod has a user namespace and checks are relaxed for it. */
export function isRelaxed({ relaxUserNamespaces, spec }: CheckedPod): boolean {
  return relaxUserNamespaces && spec.hostUsers === false;
}

export function exceptOnWindows(check: CheckPod): CheckPod {
  return (pod) => (pod.spec.os?.name === "windows" ? undefined : check(pod));
}

/** `container "a"`, `containers "a", "b"` */
export function namesText(noun: string, values: readonly string[]): string {
  return `${pluralize(noun, values.length)} ${quoteList(values)}`;
}

export function pluralize(noun: string, count: number): string {
  return count === 1 ? noun : `${noun}s`;
}

export function quoteList(values: readonly string[]): string {
  return values.map((value) => `"${value}"`).join(", ");
}

export function sortUnique(values: Iterable<string>): readonly string[] {
  return [...new Set(values)].sort();
}

/** `pod and container "a"`: the parts of the pod that set a forbidden value. */
export function settersOf(pod: boolean, containers: readonly string[]): string {
  return [...(pod ? ["pod"] : []), ...(containers.length === 0 ? [] : [namesText("container", containers)])].join(
    " and ",
  );
}
