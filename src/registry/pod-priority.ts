/** A pod's priority is that of the class it names; without a name, of the default class. */
import type { Pod, PodSpec } from "../api/core/pod.ts";
import type { PriorityClass } from "../api/scheduling/priority-class.ts";
import { forbidden } from "../api/status.ts";
import type { Scope } from "./registry.ts";

export interface PriorityClasses {
  find(name: string, scope: Scope): Promise<PriorityClass | undefined>;
  list(scope: Scope): Promise<readonly PriorityClass[]>;
}

/** The classes of what a cluster cannot do without, which exist everywhere. */
const SYSTEM_CLASSES: Readonly<Record<string, number>> = {
  "system-cluster-critical": 2_000_000_000,
  "system-node-critical": 2_000_001_000,
};

/** The spec with its priority. Throws 403 for an unknown class, or for a priority that is not the class's. */
export async function withPriority(spec: PodSpec, scope: Scope, pod: Pod, classes: PriorityClasses): Promise<PodSpec> {
  const refuse = (why: string): Error =>
    forbidden({ group: scope.group, resource: "pods", name: pod.metadata?.name ?? "" }, why);
  const found = spec.priorityClassName
    ? await named(spec.priorityClassName, scope, classes)
    : await fallback(scope, classes);
  if (found === undefined) throw refuse(`no PriorityClass with name ${spec.priorityClassName} was found`);
  const { name, value, preemptionPolicy } = found;
  const computed = "priority admission controller computed";
  if (spec.priority !== undefined && spec.priority !== value) {
    throw refuse(
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; ${computed} ${value} from the given PriorityClass name`,
    );
  }
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== preemptionPolicy) {
    throw refuse(
      `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; ${computed} ${preemptionPolicy} from the given PriorityClass name`,
    );
  }
  return {
    ...spec,
    ...(name === "" ? {} : { priorityClassName: name }),
    priority: value,
    preemptionPolicy,
  };
}

interface Ranking {
  readonly name: string;
  readonly value: number;
  readonly preemptionPolicy: "PreemptLowerPriority" | "Never";
}

function rankingOf({ metadata, value, preemptionPolicy = "PreemptLowerPriority" }: PriorityClass): Ranking {
  return { name: metadata?.name ?? "", value, preemptionPolicy };
}

async function named(name: string, scope: Scope, classes: PriorityClasses): Promise<Ranking | undefined> {
  const found = await classes.find(name, scope);
  if (found !== undefined) return rankingOf(found);
  const value = Object.hasOwn(SYSTEM_CLASSES, name) ? SYSTEM_CLASSES[name] : undefined;
  return value === undefined ? undefined : { name, value, preemptionPolicy: "PreemptLowerPriority" };
}

/** Where several classes say they are the default, the least of them is. */
async function fallback(scope: Scope, classes: PriorityClasses): Promise<Ranking> {
  const defaults = (await classes.list(scope)).filter(({ globalDefault }) => globalDefault === true);
  const [least] = defaults.sort((a, b) => a.value - b.value);
  return least === undefined ? { name: "", value: 0, preemptionPolicy: "PreemptLowerPriority" } : rankingOf(least);
}

/** A pod keeps the priority it was given, though a client left it out. */
export function keepPriority(next: PodSpec, previous: PodSpec): PodSpec {
  const { priority, preemptionPolicy } = previous;
  return {
    ...next,
    ...(next.priority === undefined && priority !== undefined ? { priority } : {}),
    ...(next.preemptionPolicy === undefined && preemptionPolicy !== undefined ? { preemptionPolicy } : {}),
  };
}
