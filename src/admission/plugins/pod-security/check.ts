/** What a check of a pod is, and the words that checks have in common. */
import type { Container } from "../../../api/core/container/schema.ts";
import { containersWithPaths } from "../../../api/core/pod-spec/containers.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { ObjectMeta } from "../../../api/meta/object-meta.ts";

export interface CheckedPod {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  /** The gate `UserNamespacesPodSecurityStandards`: pods with users of their own may do more. */
  readonly relaxed: boolean;
}

/** Why a pod is not as it must be: in a few words, and which part of it. */
export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

export type CheckPod = (pod: CheckedPod) => Violation | undefined;

export interface Check {
  readonly id: string;
  /** By the minor number of the release that changed the rule, ascending; before the first there is none. */
  readonly versions: readonly (readonly [minor: number, check: CheckPod])[];
  /** Checks of the baseline that a pod passes if it passes this one. */
  readonly overrides?: readonly string[];
}

/** In the order in which they run. */
export function containersOf({ spec }: CheckedPod): readonly Container[] {
  return containersWithPaths(spec, "").map(({ container }) => container);
}

export function namesWhere(pod: CheckedPod, isBad: (container: Container) => boolean): readonly string[] {
  return containersOf(pod)
    .filter(isBad)
    .map(({ name }) => name);
}

/** Whether the pod's users are not those of the host, and that counts. */
export function hasOwnUsers({ relaxed, spec }: CheckedPod): boolean {
  return relaxed && spec.hostUsers === false;
}

export function exceptOnWindows(check: CheckPod): CheckPod {
  return (pod) => (pod.spec.os?.name === "windows" ? undefined : check(pod));
}

/** `container "a"`, `containers "a", "b"` */
export function counted(noun: string, values: readonly string[]): string {
  return `${plural(noun, values.length)} ${quoted(values)}`;
}

export function plural(noun: string, count: number): string {
  return count === 1 ? noun : `${noun}s`;
}

export function quoted(values: readonly string[]): string {
  return values.map((value) => `"${value}"`).join(", ");
}

export function sorted(values: Iterable<string>): readonly string[] {
  return [...new Set(values)].sort();
}

/** `pod and container "a"`: who says what must not be said. */
export function settersOf(pod: boolean, containers: readonly string[]): string {
  return [...(pod ? ["pod"] : []), ...(containers.length === 0 ? [] : [counted("container", containers)])].join(
    " and ",
  );
}
