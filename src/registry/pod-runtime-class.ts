/** What the class of a pod's runtime adds to the pod: its overhead, and the nodes that have such a runtime. */
import { type Toleration, toleration } from "../api/core/affinity.ts";
import type { Pod, PodSpec } from "../api/core/pod.ts";
import { resourceList } from "../api/core/resources.ts";
import type { RuntimeClass } from "../api/node/runtime-class.ts";
import { forbidden } from "../api/status.ts";
import { semanticEqual } from "../schema/semantic-equal.ts";
import type { Scope } from "./registry.ts";

export interface RuntimeClasses {
  find(name: string, scope: Scope): Promise<RuntimeClass | undefined>;
}

/** Throws 403 for a class that is unknown or contradicts the pod. */
export async function withRuntimeClass(
  spec: PodSpec,
  scope: Scope,
  pod: Pod,
  classes: RuntimeClasses,
): Promise<PodSpec> {
  const refuse = (why: string): Error =>
    forbidden({ group: scope.group, resource: "pods", name: pod.metadata?.name ?? "" }, why);
  const name = spec.runtimeClassName;
  const found = name === undefined ? undefined : await classes.find(name, scope);
  if (name !== undefined && found === undefined) {
    throw refuse(`pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
  }
  const fixed = found?.overhead?.podFixed;
  const given = Object.keys(spec.overhead ?? {}).length > 0;
  if (given && found?.overhead === undefined) {
    throw refuse("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  }
  if (given && !semanticEqual(resourceList, spec.overhead, fixed)) {
    throw refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  }
  return withScheduling(fixed === undefined ? spec : { ...spec, overhead: fixed }, found, refuse);
}

function withScheduling(spec: PodSpec, found: RuntimeClass | undefined, refuse: (why: string) => Error): PodSpec {
  const { nodeSelector = {}, tolerations = [] } = found?.scheduling ?? {};
  for (const [label, value] of Object.entries(nodeSelector)) {
    const own = spec.nodeSelector?.[label];
    if (own === undefined || own === value) continue;
    throw refuse(
      `conflict: runtimeClass.scheduling.nodeSelector[${label}] = ${value}; pod.spec.nodeSelector[${label}] = ${own}`,
    );
  }
  const merged = { ...spec.nodeSelector, ...nodeSelector };
  return {
    ...spec,
    ...(Object.keys(merged).length === 0 ? {} : { nodeSelector: merged }),
    ...(tolerations.length === 0 ? {} : { tolerations: together(spec.tolerations ?? [], tolerations) }),
  };
}

function together(own: readonly Toleration[], added: readonly Toleration[]): readonly Toleration[] {
  return [...own, ...added.filter((one) => !own.some((other) => semanticEqual(toleration, one, other)))];
}
