/** Whether the node can take a pod that the scheduler, or nobody, sent it: in Kubernetes' order and words. */
import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { affinityMismatch } from "../../../controllers/scheduler/filters/node-affinity.ts";
import { tolerates } from "../../../controllers/scheduler/filters/taints.ts";
import type { WaitingReason } from "../status/container-status.ts";
import { podAmount, requestedNames, resourceAmount } from "../resources/pod-resources.ts";
import { appContainers, initContainers, isCritical, isSidecar, isStatic } from "../pod-fields.ts";
import { qosClass } from "../resources/qos.ts";
import { forbiddenSysctl } from "../sandbox/sysctls.ts";

export interface AdmissionInput {
  readonly pod: Pod;
  /** Pods that the node runs already, the new one not among them. */
  readonly others: readonly Pod[];
  /** With its labels, its taints and what it can give to pods. */
  readonly node: Node;
  /** Types of the node's conditions that are a pressure and True. */
  readonly pressures: readonly string[];
  /** Sysctls allowed beyond the safe ones: names, or beginnings of names that end in `*`. */
  readonly allowedSysctls: readonly string[];
  /** Whether the node's kernel confines programs with AppArmor. */
  readonly appArmor: boolean;
}

/** What a critical pod is short of: others may have to make room for it. */
export interface Shortage {
  readonly resource: string;
  readonly amount: number;
}

export interface Obstacle extends WaitingReason {
  /** Set where room on the node would do. */
  readonly shortage?: Shortage;
}

const OS_LABEL = "kubernetes.io/os";

/** All that speaks against the pod, first things first; empty when nothing does. */
export function obstacles(input: AdmissionInput): readonly Obstacle[] {
  const never = pressure(input) ?? sysctls(input) ?? appArmor(input) ?? operatingSystem(input);
  if (never !== undefined) return [never];
  return [...shortages(input), ...mismatches(input)];
}

function pressure({ pod, pressures }: AdmissionInput): Obstacle | undefined {
  if (pressures.length === 0 || isCritical(pod)) return undefined;
  if (pressures.every((each) => each === "MemoryPressure")) {
    const taint = { key: "node.kubernetes.io/memory-pressure", effect: "NoSchedule" } as const;
    const tolerant = (pod.spec?.tolerations ?? []).some((toleration) => tolerates(toleration, taint));
    if (tolerant || qosClass(pod) !== "BestEffort") return undefined;
  }
  return { reason: "Evicted", message: `The node had condition: [${pressures.join(" ")}]. ` };
}

function sysctls({ pod, allowedSysctls }: AdmissionInput): Obstacle | undefined {
  const message = forbiddenSysctl(pod, allowedSysctls);
  return message === undefined ? undefined : { reason: "SysctlForbidden", message };
}

function appArmor({ pod, appArmor: enabled }: AdmissionInput): Obstacle | undefined {
  const contexts = [pod.spec, ...[...initContainers(pod), ...appContainers(pod)]].map((each) => each?.securityContext);
  const wanted = contexts.some((context) => (context?.appArmorProfile?.type ?? "Unconfined") !== "Unconfined");
  if (enabled || !wanted) return undefined;
  return { reason: "AppArmor", message: "Cannot enforce AppArmor: AppArmor is not enabled on the host" };
}

function operatingSystem({ pod }: AdmissionInput): Obstacle | undefined {
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

/** First those that every pod has, as the scheduler orders them. */
const common = ["cpu", "memory", "ephemeral-storage"];

function shortages({ pod, others, node }: AdmissionInput): readonly Obstacle[] {
  const has = node.status?.allocatable ?? {};
  // Nobody offers an extended resource that the node does not have: whoever sent the pod here means to do without.
  const rest = requestedNames(pod).filter((name) => !common.includes(name) && (!isExtended(name) || name in has));
  const amounts = [...common, ...rest].map(
    (name) => [name, podAmount(pod, "requests", name), sum(others, name)] as const,
  );
  return [["pods", 1, others.length] as const, ...amounts].flatMap(([name, requested, used]) => {
    const capacity = resourceAmount(name, has[name]);
    if (requested === 0 || requested <= capacity - used) return [];
    const figures = `requested: ${requested}, used: ${used}, capacity: ${capacity}`;
    return {
      reason: `OutOf${name}`,
      message: `Node didn't have enough resource: ${name}, ${figures}`,
      shortage: { resource: name, amount: requested - (capacity - used) },
    };
  });
}

function sum(pods: readonly Pod[], name: string): number {
  return pods.reduce((total, each) => total + podAmount(each, "requests", name), 0);
}

function isExtended(name: string): boolean {
  return name.includes("/") && !name.split("/")[0]?.endsWith("kubernetes.io") && !name.startsWith("requests.");
}

function mismatches({ pod, others, node }: AdmissionInput): readonly Obstacle[] {
  const [affinity] = affinityMismatch(pod, node);
  const clash = hostPorts(pod).some((port) => others.flatMap(hostPorts).some((taken) => collide(port, taken)));
  const tolerations = pod.spec?.tolerations ?? [];
  const untolerated = (node.spec?.taints ?? []).some(
    (taint) => taint.effect === "NoExecute" && !tolerations.some((each) => tolerates(each, taint)),
  );
  return [
    ...(affinity === undefined ? [] : [predicate("NodeAffinity", affinity)]),
    ...(clash ? [predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")] : []),
    ...(untolerated && !isStatic(pod)
      ? [predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")]
      : []),
  ];
}

function predicate(name: string, why: string): Obstacle {
  return { reason: name, message: `Predicate ${name} failed: ${why}` };
}

interface HostPort {
  readonly port: number;
  readonly protocol: string;
  readonly ip: string;
}

const ANY = "0.0.0.0";

function collide(a: HostPort, b: HostPort): boolean {
  return a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || a.ip === ANY || b.ip === ANY);
}

function hostPorts(pod: Pod): readonly HostPort[] {
  const hostNetwork = pod.spec?.hostNetwork === true;
  return [...initContainers(pod).filter(isSidecar), ...appContainers(pod)]
    .flatMap((container) => container.ports ?? [])
    .map((port) => ({
      port: port.hostPort ?? (hostNetwork ? port.containerPort : 0),
      protocol: port.protocol ?? "TCP",
      ip: port.hostIP || ANY,
    }))
    .filter((each) => each.port > 0);
}
