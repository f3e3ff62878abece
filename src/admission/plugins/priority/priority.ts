/** Priority: sets a pod's priority from its PriorityClass or the default class, and rejects a second default class. */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { priorityClassKind } from "../../../api/scheduling/priority-class/kind.ts";
import type { PriorityClass } from "../../../api/scheduling/priority-class/schema.ts";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import { type AdmissionRequest, matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, ObjectReader } from "../../chain/plugin.ts";

/** Built-in classes. */
const SYSTEM_CLASSES: Readonly<Record<string, number>> = {
  "system-cluster-critical": 2_000_000_000,
  "system-node-critical": 2_000_001_000,
};

export function priority({ reader }: { readonly reader: ObjectReader }): AdmissionPlugin {
  return {
    name: "Priority",
    handles: (attributes) =>
      matchesResource(attributes, podKind, ["CREATE", "UPDATE"]) ||
      matchesResource(attributes, priorityClassKind, ["CREATE", "UPDATE"]),
    mutate(request) {
      if (request.kind.plural !== podKind.plural) return undefined;
      const pod = request.object as Pod;
      if (pod.spec === undefined) return undefined;
      return request.operation === "CREATE"
        ? setPriority(request, pod, pod.spec, reader)
        : keepPriority(pod, request.oldObject);
    },
    validate(request) {
      if (request.kind.plural !== priorityClassKind.plural) return;
      const { globalDefault, metadata } = request.object as PriorityClass;
      if (globalDefault !== true) return;
      return andThen(findDefaultClass(reader, request), (found) => {
        const other = found?.metadata?.name;
        if (other === undefined || (request.operation === "UPDATE" && other === metadata?.name)) return;
        throw newForbidden(request, `PriorityClass ${other} is already marked as default. Only one default can exist`);
      });
    },
  };
}

function setPriority(request: AdmissionRequest, pod: Pod, spec: PodSpec, reader: ObjectReader): MaybePromise<Pod> {
  const found = spec.priorityClassName
    ? findClass(spec.priorityClassName, reader, request)
    : andThen(findDefaultClass(reader, request), (found) => resolvedPriority(found ?? NO_CLASS));
  return andThen(found, (resolved) => withPriority(request, pod, spec, resolved));
}

/** A priority that the pod specifies itself must equal the one of its class. */
function withPriority(request: AdmissionRequest, pod: Pod, spec: PodSpec, resolved: ResolvedPriority | undefined): Pod {
  if (resolved === undefined)
    throw newForbidden(request, `no PriorityClass with name ${spec.priorityClassName} was found`);
  const { name, value, preemptionPolicy } = resolved;
  const mismatch = (what: string, given: unknown, computed: unknown): Error => {
    const computedBy = `priority admission controller computed ${computed} from the given PriorityClass name`;
    return newForbidden(request, `the ${what} (${given}) must not be provided in pod spec; ${computedBy}`);
  };
  if (spec.priority !== undefined && spec.priority !== value) {
    throw mismatch("integer value of priority", spec.priority, value);
  }
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== preemptionPolicy) {
    throw mismatch("string value of PreemptionPolicy", spec.preemptionPolicy, preemptionPolicy);
  }
  const given = name === "" ? {} : { priorityClassName: name };
  return { ...pod, spec: { ...spec, ...given, priority: value, preemptionPolicy } } as Pod;
}

interface ResolvedPriority {
  readonly name: string;
  readonly value: number;
  readonly preemptionPolicy: "PreemptLowerPriority" | "Never";
}

const NO_CLASS: PriorityClass = { value: 0 };

function resolvedPriority({
  metadata,
  value,
  preemptionPolicy = "PreemptLowerPriority",
}: PriorityClass): ResolvedPriority {
  return { name: metadata?.name ?? "", value, preemptionPolicy };
}

function findClass(
  name: string,
  reader: ObjectReader,
  request: AdmissionRequest,
): MaybePromise<ResolvedPriority | undefined> {
  return andThen(reader.get(priorityClassKind, "", name, request), (found) => {
    if (found !== undefined) return resolvedPriority(found);
    const value = Object.hasOwn(SYSTEM_CLASSES, name) ? SYSTEM_CLASSES[name] : undefined;
    return value === undefined ? undefined : { name, value, preemptionPolicy: "PreemptLowerPriority" };
  });
}

/** With several default classes, the one with the lowest value applies. */
function findDefaultClass(reader: ObjectReader, request: AdmissionRequest): MaybePromise<PriorityClass | undefined> {
  return andThen(reader.list(priorityClassKind, "", request), (classes) => {
    const [lowest] = classes.filter(({ globalDefault }) => globalDefault === true).sort((a, b) => a.value - b.value);
    return lowest;
  });
}

/** An update that omits the priority keeps the existing one. */
function keepPriority(pod: Pod, oldObject: AdmissionRequest["oldObject"]): Pod | undefined {
  const { spec } = pod;
  const before = (oldObject as Pod | undefined)?.spec;
  if (spec === undefined || before === undefined) return undefined;
  const { priority: value, preemptionPolicy } = before;
  const restored = {
    ...(spec.priority === undefined && value !== undefined ? { priority: value } : {}),
    ...(spec.preemptionPolicy === undefined && preemptionPolicy !== undefined ? { preemptionPolicy } : {}),
  };
  return Object.keys(restored).length === 0 ? undefined : ({ ...pod, spec: { ...spec, ...restored } } as Pod);
}
