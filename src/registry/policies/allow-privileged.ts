/** The policy of `--allow-privileged=false` for pods and pod templates. */

import { containersWithPaths } from "../../api/core/pod-spec/containers.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { type FieldError, forbiddenField } from "../../schema/validation/field-error.ts";
import type { ClusterPolicy } from "../registry.ts";

const DETAIL = "disallowed by cluster policy";

/** Rejects privileged containers; an update may keep those that the object has. */
export const forbidPrivileged: ClusterPolicy = (kind, next, previous) => {
  const at = pathsByKind.get(keyOf(kind));
  if (at === undefined) return [];
  const spec = podSpecAt(next, at);
  if (spec === undefined) return [];
  const before = previous === undefined ? undefined : podSpecAt(previous, at);
  const existing = new Set(before === undefined ? [] : findPrivileged(before, "").map(({ name }) => name));
  const found = findPrivileged(spec, at.join(".")).filter(({ name }) => !existing.has(name));
  return found.map(({ error }) => error);
};

function keyOf({ group, plural }: Kind): string {
  return `${group}/${plural}`;
}

const TEMPLATE = ["spec", "template", "spec"];

/** Paths of the pod spec in objects of each kind. */
const pathsByKind: ReadonlyMap<string, readonly string[]> = new Map([
  ["/pods", ["spec"]],
  ["/podtemplates", ["template", "spec"]],
  ["/replicationcontrollers", TEMPLATE],
  ["apps/daemonsets", TEMPLATE],
  ["apps/deployments", TEMPLATE],
  ["apps/replicasets", TEMPLATE],
  ["apps/statefulsets", TEMPLATE],
  ["batch/jobs", TEMPLATE],
  ["batch/cronjobs", ["spec", "jobTemplate", ...TEMPLATE]],
]);

function podSpecAt(object: ApiObject, path: readonly string[]): PodSpec | undefined {
  let at: unknown = object;
  for (const step of path) at = (at as Readonly<Record<string, unknown>> | undefined)?.[step];
  return at as PodSpec | undefined;
}

interface Finding {
  /** Name of the container; empty for the pod. */
  readonly name: string;
  readonly error: FieldError;
}

function findPrivileged(spec: PodSpec, path: string): readonly Finding[] {
  const findings: Finding[] = [];
  let isHostProcess = spec.securityContext?.windowsOptions?.hostProcess === true;
  for (const each of containersWithPaths(spec, path)) {
    const { name, securityContext } = each.container;
    isHostProcess ||= securityContext?.windowsOptions?.hostProcess === true;
    if (securityContext?.privileged !== true) continue;
    findings.push({ name, error: forbiddenField(`${each.at}.securityContext.privileged`, DETAIL) });
  }
  if (isHostProcess) findings.push({ name: "", error: forbiddenField(path, `hostProcess containers are ${DETAIL}`) });
  return findings;
}
