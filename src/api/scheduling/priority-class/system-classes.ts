/** The two built-in priority classes. */
import type { PriorityClass } from "./schema.ts";

export const SYSTEM_PREFIX = "system-";

export const systemPriorityClasses: readonly PriorityClass[] = [
  {
    metadata: { name: "system-node-critical" },
    value: 2_000_001_000,
    description: "Used for system critical pods that must not be moved from their current node.",
    preemptionPolicy: "PreemptLowerPriority",
  },
  {
    metadata: { name: "system-cluster-critical" },
    value: 2_000_000_000,
    description:
      "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    preemptionPolicy: "PreemptLowerPriority",
  },
];

function systemClassOf({ metadata }: PriorityClass): PriorityClass | undefined {
  return systemPriorityClasses.find((systemClass) => systemClass.metadata?.name === metadata?.name);
}

export function isSystemClass(object: PriorityClass): boolean {
  return systemClassOf(object) !== undefined;
}

/** The error for a class with a reserved name; undefined for a built-in class. */
export function systemClassProblem(object: PriorityClass): string | undefined {
  const name = object.metadata?.name ?? "";
  const systemClass = systemClassOf(object);
  if (systemClass === undefined) return `${name} is not a known system priority class`;
  if (object.value !== systemClass.value) return `value of ${name} PriorityClass must be ${systemClass.value}`;
  return object.globalDefault === true ? `globalDefault of ${name} PriorityClass must be false` : undefined;
}
