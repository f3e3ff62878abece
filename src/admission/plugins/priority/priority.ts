/** A pod's priority is that of the class it names, or else of the default class, of which there is one at most. */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { priorityClassKind } from "../../../api/scheduling/priority-class/kind.ts";
import type { PriorityClass } from "../../../api/scheduling/priority-class/schema.ts";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, AdmissionRequest, ObjectReader } from "../../chain/plugin.ts";

/** The classes of what a cluster cannot do without, which exist everywhere. */
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
      return request.operation === "CREATE" ? ranked(request, pod, pod.spec, reader) : kept(pod, request.oldObject);
    },
    validate(request) {
      if (request.kind.plural !== priorityClassKind.plural) return;
      const { globalDefault, metadata } = request.object as PriorityClass;
      if (globalDefault !== true) return;
      return andThen(defaultClass(reader, request), (found) => {
        const other = found?.metadata?.name;
        if (other === undefined || (request.operation === "UPDATE" && other === metadata?.name)) return;
        throw newForbidden(request, `PriorityClass ${other} is already marked as default. Only one default can exist`);
      });
    },
  };
}

function ranked(request: AdmissionRequest, pod: Pod, spec: PodSpec, reader: ObjectReader): MaybePromise<Pod> {
  const found = spec.priorityClassName
    ? named(spec.priorityClassName, reader, request)
    : andThen(defaultClass(reader, request), (found) => rankingOf(found ?? NO_CLASS));
  return andThen(found, (ranking) => withRanking(request, pod, spec, ranking));
}

/** What the pod says of its rank itself must be the same. */
function withRanking(request: AdmissionRequest, pod: Pod, spec: PodSpec, found: Ranking | undefined): Pod {
  if (found === undefined)
    throw newForbidden(request, `no PriorityClass with name ${spec.priorityClassName} was found`);
  const { name, value, preemptionPolicy } = found;
  const differs = (what: string, given: unknown, computed: unknown): Error => {
    const ours = `priority admission controller computed ${computed} from the given PriorityClass name`;
    return newForbidden(request, `the ${what} (${given}) must not be provided in pod spec; ${ours}`);
  };
  if (spec.priority !== undefined && spec.priority !== value) {
    throw differs("integer value of priority", spec.priority, value);
  }
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== preemptionPolicy) {
    throw differs("string value of PreemptionPolicy", spec.preemptionPolicy, preemptionPolicy);
  }
  const given = name === "" ? {} : { priorityClassName: name };
  return { ...pod, spec: { ...spec, ...given, priority: value, preemptionPolicy } } as Pod;
}

interface Ranking {
  readonly name: string;
  readonly value: number;
  readonly preemptionPolicy: "PreemptLowerPriority" | "Never";
}

const NO_CLASS: PriorityClass = { value: 0 };

function rankingOf({ metadata, value, preemptionPolicy = "PreemptLowerPriority" }: PriorityClass): Ranking {
  return { name: metadata?.name ?? "", value, preemptionPolicy };
}

function named(name: string, reader: ObjectReader, request: AdmissionRequest): MaybePromise<Ranking | undefined> {
  return andThen(reader.get(priorityClassKind, "", name, request), (found) => {
    if (found !== undefined) return rankingOf(found);
    const value = Object.hasOwn(SYSTEM_CLASSES, name) ? SYSTEM_CLASSES[name] : undefined;
    return value === undefined ? undefined : { name, value, preemptionPolicy: "PreemptLowerPriority" };
  });
}

/** Where several classes say they are the default, the least of them is. */
function defaultClass(reader: ObjectReader, request: AdmissionRequest): MaybePromise<PriorityClass | undefined> {
  return andThen(reader.list(priorityClassKind, "", request), (classes) => {
    const [least] = classes.filter(({ globalDefault }) => globalDefault === true).sort((a, b) => a.value - b.value);
    return least;
  });
}

/** A pod keeps the priority it was given, though a client left it out. */
function kept(pod: Pod, previous: AdmissionRequest["oldObject"]): Pod | undefined {
  const { spec } = pod;
  const before = (previous as Pod | undefined)?.spec;
  if (spec === undefined || before === undefined) return undefined;
  const { priority: value, preemptionPolicy } = before;
  const lost = {
    ...(spec.priority === undefined && value !== undefined ? { priority: value } : {}),
    ...(spec.preemptionPolicy === undefined && preemptionPolicy !== undefined ? { preemptionPolicy } : {}),
  };
  return Object.keys(lost).length === 0 ? undefined : ({ ...pod, spec: { ...spec, ...lost } } as Pod);
}
