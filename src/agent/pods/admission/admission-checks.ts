/** The node's own checks of a pod that is assigned to it, in Kubernetes' order and with its texts. */
import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { isExtendedResource } from "../../../api/core/resources/names.ts";
import { affinityMismatch } from "../../../scheduler/plugins/nodes/node-selector.ts";
import { isTolerated } from "../../../scheduler/plugins/nodes/tolerations.ts";
import { appContainers, initContainers, isCritical, isSidecar, isStatic } from "../pod-fields.ts";
import { getPodResource, listRequestedResources, parseResource } from "../resources/pod-resources.ts";
import { getPodQosClass } from "../resources/qos.ts";
import { findForbiddenSysctl } from "../sandbox/sysctls.ts";
import type { WaitingReason } from "../status/container-status.ts";

export interface AdmissionInput {
  readonly pod: Pod;
  /** Pods that the node runs already, without the new one. */
  readonly others: readonly Pod[];
  /** With labels, taints and allocatable resources. */
  readonly node: Node;
  /** Types of the pressure conditions of the node that are True. */
  readonly pressures: readonly string[];
  /** Sysctls allowed beyond the safe ones: names, or prefixes of names followed by `*`. */
  readonly allowedSysctls: readonly string[];
  /** Whether AppArmor is enabled in the node's kernel. */
  readonly appArmor: boolean;
  /** What the runtime lacks for the pod. */
  readonly runtimeProblem?: WaitingReason | undefined;
}

/** A resource that the pod lacks; a critical pod may preempt others for it. */
export interface Shortage {
  readonly resource: string;
  readonly quantity: number;
}

export interface AdmissionFailure extends WaitingReason {
  /** Set if the pod only lacks capacity. */
  readonly shortage?: Shortage;
}

const OS_LABEL = "kubernetes.io/os";

/** Checked before the resources of the pod are allocated. */
export function findEarlyFailure(input: AdmissionInput): AdmissionFailure | undefined {
  return checkNodePressure(input) ?? checkSysctls(input);
}

/** All failures in order; empty when the node can run the pod. */
export function findAdmissionFailures(input: AdmissionInput): readonly AdmissionFailure[] {
  const never = findEarlyFailure(input) ?? checkOperatingSystem(input) ?? input.runtimeProblem;
  if (never !== undefined) return [never];
  const last = checkAppArmor(input);
  return [...findShortages(input), ...checkPredicates(input), ...(last === undefined ? [] : [last])];
}

function checkNodePressure({ pod, pressures }: AdmissionInput): AdmissionFailure | undefined {
  if (pressures.length === 0 || isCritical(pod)) return undefined;
  if (pressures.every((each) => each === "MemoryPressure")) {
    const taint = { key: "node.kubernetes.io/memory-pressure", effect: "NoSchedule" } as const;
    const tolerant = isTolerated(pod.spec?.tolerations ?? [], taint);
    if (tolerant || getPodQosClass(pod) !== "BestEffort") return undefined;
  }
  return { reason: "Evicted", message: `The node had condition: [${pressures.join(" ")}]. ` };
}

function checkSysctls({ pod, allowedSysctls }: AdmissionInput): AdmissionFailure | undefined {
  const message = findForbiddenSysctl(pod, allowedSysctls);
  return message === undefined ? undefined : { reason: "SysctlForbidden", message };
}

function checkAppArmor({ pod, appArmor: enabled }: AdmissionInput): AdmissionFailure | undefined {
  const contexts = [pod.spec, ...[...initContainers(pod), ...appContainers(pod)]].map((each) => each?.securityContext);
  const isRequired = contexts.some((context) => (context?.appArmorProfile?.type ?? "Unconfined") !== "Unconfined");
  if (enabled || !isRequired) return undefined;
  return { reason: "AppArmor", message: "Cannot enforce AppArmor: AppArmor is not enabled on the host" };
}

function checkOperatingSystem({ pod }: AdmissionInput): AdmissionFailure | undefined {
  if ((pod.metadata?.labels?.[OS_LABEL] ?? "linux") !== "linux") {
    return {
      reason: "PodOSSelectorNodeLabelDoesNotMatch",
      message: `Failed to admit pod as the \`${OS_LABEL}\` label doesn't match node label`,
    };
  }
  if ((pod.spec?.os?.name ?? "linux") !== "linux") {
    return { reason: "PodOSNotSupported", message: "Failed to admit pod as the OS field doesn't match node OS" };
  }
  return undefined;
}

/** Checked first, in the scheduler's order. */
const COMMON_RESOURCES = ["cpu", "memory", "ephemeral-storage"];

function findShortages({ pod, others, node }: AdmissionInput): readonly AdmissionFailure[] {
  const has = node.status?.allocatable ?? {};
  // A pod may request an extended resource that the node does not have at all, as in Kubernetes.
  const rest = listRequestedResources(pod).filter(
    (name) => !COMMON_RESOURCES.includes(name) && (!isExtendedResource(name) || name in has),
  );
  const quantities = [...COMMON_RESOURCES, ...rest].map(
    (name) => [name, getPodResource(pod, "requests", name), sumRequests(others, name)] as const,
  );
  return [["pods", 1, others.length] as const, ...quantities].flatMap(([name, requested, used]) => {
    const capacity = parseResource(name, has[name]);
    if (requested === 0 || requested <= capacity - used) return [];
    const figures = `requested: ${requested}, used: ${used}, capacity: ${capacity}`;
    return {
      reason: `OutOf${name}`,
      message: `Node didn't have enough resource: ${name}, ${figures}`,
      shortage: { resource: name, quantity: requested - (capacity - used) },
    };
  });
}

function sumRequests(pods: readonly Pod[], name: string): number {
  return pods.reduce((total, each) => total + getPodResource(each, "requests", name), 0);
}

function checkPredicates({ pod, others, node }: AdmissionInput): readonly AdmissionFailure[] {
  const [affinity] = affinityMismatch(pod, node);
  const clash = hostPorts(pod).some((port) => others.flatMap(hostPorts).some((taken) => portsConflict(port, taken)));
  const tolerations = pod.spec?.tolerations ?? [];
  const untolerated = (node.spec?.taints ?? []).some(
    (taint) => taint.effect === "NoExecute" && !isTolerated(tolerations, taint),
  );
  return [
    ...(affinity === undefined ? [] : [makePredicateFailure("NodeAffinity", affinity)]),
    ...(clash ? [makePredicateFailure("NodePorts", "node(s) didn't have free ports for the requested pod ports")] : []),
    ...(untolerated && !isStatic(pod)
      ? [makePredicateFailure("TaintToleration", "node(s) had taints that the pod didn't tolerate")]
      : []),
  ];
}

function makePredicateFailure(name: string, why: string): AdmissionFailure {
  return { reason: name, message: `Predicate ${name} failed: ${why}` };
}

interface HostPort {
  readonly port: number;
  readonly protocol: string;
  readonly ip: string;
}

const ANY_ADDRESS = "0.0.0.0";

function portsConflict(a: HostPort, b: HostPort): boolean {
  return (
    a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || a.ip === ANY_ADDRESS || b.ip === ANY_ADDRESS)
  );
}

function hostPorts(pod: Pod): readonly HostPort[] {
  const hostNetwork = pod.spec?.hostNetwork === true;
  return [...initContainers(pod).filter(isSidecar), ...appContainers(pod)]
    .flatMap((container) => container.ports ?? [])
    .map((port) => ({
      port: port.hostPort ?? (hostNetwork ? port.containerPort : 0),
      protocol: port.protocol ?? "TCP",
      ip: port.hostIP || ANY_ADDRESS,
    }))
    .filter((each) => each.port > 0);
}
