/** How writes change pods: fields that the server sets or drops. */
import type { FieldError } from "../../../schema/validation/field-error.ts";
import type { Strategy, SubresourceStrategy } from "../../kind.ts";
import { keepStatus, replaceStatus, setFirstGeneration } from "../../strategy.ts";
import type { PodAffinityTerm } from "../pod-spec/affinity.ts";
import { appArmorWarnings, syncAppArmor } from "../pod-spec/app-armor.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import { setPodDefaults } from "./defaults.ts";
import { updatePodGeneration } from "./generation.ts";
import { qosClassOf } from "./qos.ts";
import type { Pod, PodStatus } from "./schema.ts";
import { validatePodStatusUpdate } from "./status-validation.ts";
import { validatePodUpdate } from "./update-validation.ts";
import { validateNewPod } from "./validation.ts";
import { podWarnings } from "./warnings.ts";

export const podStrategy: Strategy<Pod> = {
  setDefaults: (object, features) => syncPodIps(setPodDefaults(object, features)),
  warningsBeforePrepare: (object) => appArmorWarnings(object),
  prepareForCreate,
  prepareForUpdate: (next, previous) => updatePodGeneration(keepStatus(next, previous), previous),
  validate: (object, previous): readonly FieldError[] => (previous === undefined ? validateNewPod(object) : []),
  validateUpdate: validatePodUpdate,
  // Controllers and agents, not people, update pods, and often.
  warnings: (object, previous) => (previous === undefined ? podWarnings(object) : []),
  gracePeriodSeconds: gracePeriodSeconds,
};

export const podStatusStrategy: SubresourceStrategy<Pod> = {
  resetFields: [["spec"], ["metadata", "deletionTimestamp"], ["metadata", "ownerReferences"]],
  prepareForUpdate: prepareForStatusUpdate,
  validateUpdate: validatePodStatusUpdate,
};

function prepareForCreate(object: Pod, now: string): Pod {
  const pod = syncAppArmor(setFirstGeneration(object));
  if (pod.spec === undefined) return { ...pod, status: { phase: "Pending" } };
  const spec = applyMatchLabelKeys(replaceNegativeGracePeriod(pod.spec), pod.metadata?.labels ?? {});
  return {
    ...pod,
    spec,
    status: { phase: "Pending", qosClass: qosClassOf(spec), ...schedulingGatedStatus(spec, now) },
  };
}

function replaceNegativeGracePeriod(spec: PodSpec): PodSpec {
  return (spec.terminationGracePeriodSeconds ?? 0) < 0 ? { ...spec, terminationGracePeriodSeconds: 1 } : spec;
}

/** The condition that reports the scheduling gates of a new pod. */
function schedulingGatedStatus(spec: PodSpec, now: string): Pick<PodStatus, "conditions"> {
  if ((spec.schedulingGates ?? []).length === 0) return {};
  const message = "Scheduling is blocked due to non-empty scheduling gates";
  const lastTransitionTime = now;
  return {
    conditions: [{ type: "PodScheduled", status: "False", lastTransitionTime, reason: "SchedulingGated", message }],
  };
}

/**
 * Adds the values of the pod's labels for `matchLabelKeys` and `mismatchLabelKeys` to the selectors of affinity terms.
 */
function applyMatchLabelKeys(spec: PodSpec, labels: Readonly<Record<string, string>>): PodSpec {
  if (spec.affinity?.podAffinity === undefined && spec.affinity?.podAntiAffinity === undefined) return spec;
  const withKeyRequirements = (term: PodAffinityTerm): PodAffinityTerm => addKeyRequirements(term, labels);
  const affinity = { ...spec.affinity };
  for (const field of ["podAffinity", "podAntiAffinity"] as const) {
    const terms = affinity[field];
    if (terms === undefined) continue;
    const required = terms.requiredDuringSchedulingIgnoredDuringExecution?.map(withKeyRequirements);
    const preferred = terms.preferredDuringSchedulingIgnoredDuringExecution?.map((preferredTerm) => ({
      ...preferredTerm,
      podAffinityTerm: withKeyRequirements(preferredTerm.podAffinityTerm),
    }));
    affinity[field] = {
      ...(required === undefined ? {} : { requiredDuringSchedulingIgnoredDuringExecution: required }),
      ...(preferred === undefined ? {} : { preferredDuringSchedulingIgnoredDuringExecution: preferred }),
    };
  }
  return { ...spec, affinity };
}

function addKeyRequirements(term: PodAffinityTerm, labels: Readonly<Record<string, string>>): PodAffinityTerm {
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = term;
  if (labelSelector === undefined) return term;
  const requirements = (keys: readonly string[], operator: "In" | "NotIn") =>
    keys.flatMap((key) => (Object.hasOwn(labels, key) ? [{ key, operator, values: [labels[key]!] }] : []));
  const added = [...requirements(matchLabelKeys, "In"), ...requirements(mismatchLabelKeys, "NotIn")];
  if (added.length === 0) return term;
  const matchExpressions = [...(labelSelector.matchExpressions ?? []), ...added];
  return { ...term, labelSelector: { ...labelSelector, matchExpressions } };
}

/** Keeps `podIP` equal to the first of `podIPs`; `podIP` wins where they differ. */
function syncPodIps(object: Pod): Pod {
  const { podIP, podIPs = [] } = object.status ?? {};
  const [first] = podIPs;
  if (podIP) return podIP === first?.ip ? object : { ...object, status: { ...object.status, podIPs: [{ ip: podIP }] } };
  return first === undefined ? object : { ...object, status: { ...object.status, podIP: first.ip } };
}

/** A status update changes neither the owners nor the QoS class, which was computed at creation. */
function prepareForStatusUpdate(next: Pod, previous: Pod): Pod {
  const { ownerReferences: _, ...metadata } = next.metadata ?? {};
  const owners = previous.metadata?.ownerReferences;
  const kept = syncPodIps(
    replaceStatus(
      { ...next, metadata: { ...metadata, ...(owners === undefined ? {} : { ownerReferences: owners }) } },
      previous,
    ),
  );
  const status: PodStatus = kept.status ?? {};
  const qosClass = status.qosClass ?? previous.status?.qosClass;
  const observedGeneration = status.observedGeneration ?? previous.status?.observedGeneration;
  return {
    ...kept,
    status: {
      ...status,
      ...(qosClass === undefined ? {} : { qosClass }),
      ...(observedGeneration === undefined ? {} : { observedGeneration }),
    },
  };
}

/** A pod that is unscheduled or finished is deleted at once (`podStrategy.CheckGracefulDelete`). */
function gracePeriodSeconds(object: Pod, requested: number | undefined): number {
  const seconds = requested ?? object.spec?.terminationGracePeriodSeconds ?? 30;
  if (!object.spec?.nodeName) return 0;
  if (object.status?.phase === "Succeeded" || object.status?.phase === "Failed") return 0;
  return seconds < 0 ? 1 : seconds;
}
