/** Whether the node can take a pod that the scheduler, or nobody, sent it. */
import type { Pod } from "../../api/core/pod.ts";
import type { NodeCapacity } from "../node/capacity.ts";
import { bytes, milliCpu } from "./amounts.ts";
import type { WaitingReason } from "./container-status.ts";
import { appContainers, initContainers, isSidecar, isTerminal } from "./pod-fields.ts";
import { forbiddenSysctl } from "./sysctls.ts";

export interface AdmissionInput {
  readonly pod: Pod;
  /** Pods that are on the node already, the new one not among them. */
  readonly others: readonly Pod[];
  readonly capacity: NodeCapacity;
  readonly labels: Readonly<Record<string, string>>;
  /** Sysctls allowed beyond the safe ones: names, or beginnings of names that end in `*`. */
  readonly allowedSysctls: readonly string[];
  /** Whether the node's kernel confines programs with AppArmor. */
  readonly appArmor: boolean;
}

/** The first reason against it, in Kubernetes' words; undefined when there is none. */
export function admit(input: AdmissionInput): WaitingReason | undefined {
  const { pod, labels, allowedSysctls } = input;
  const os = pod.spec?.os?.name;
  if (os !== undefined && os !== "linux") {
    return { reason: "PodOSNotSupported", message: "Failed to admit pod as the OS field doesn't match node OS" };
  }
  const wrong = Object.entries(pod.spec?.nodeSelector ?? {}).some(([key, value]) => labels[key] !== value);
  if (wrong) {
    return {
      reason: "NodeAffinity",
      message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    };
  }
  const forbidden = forbiddenSysctl(pod, allowedSysctls);
  if (forbidden !== undefined) return { reason: "SysctlForbidden", message: forbidden };
  if (!input.appArmor && wantsAppArmor(pod)) {
    return { reason: "AppArmor", message: "Cannot enforce AppArmor: AppArmor is not enabled on the host" };
  }
  return admitResources(input) ?? admitPorts(input);
}

function wantsAppArmor(pod: Pod): boolean {
  const contexts = [pod.spec, ...[...initContainers(pod), ...appContainers(pod)]].map((each) => each?.securityContext);
  return contexts.some((context) => (context?.appArmorProfile?.type ?? "Unconfined") !== "Unconfined");
}

function admitResources({ pod, others, capacity }: AdmissionInput): WaitingReason | undefined {
  const living = others.filter((each) => !isTerminal(each));
  const sum = (measure: (pod: Pod) => number): number => living.reduce((total, each) => total + measure(each), 0);
  const amounts: readonly (readonly [string, number, number, number])[] = [
    ["pods", 1, living.length, capacity.pods],
    ["cpu", requested(pod, "cpu", milliCpu), sum((each) => requested(each, "cpu", milliCpu)), capacity.cpuMillis],
    ["memory", requested(pod, "memory", bytes), sum((each) => requested(each, "memory", bytes)), capacity.memoryBytes],
    [
      "ephemeral-storage",
      requested(pod, "ephemeral-storage", bytes),
      sum((each) => requested(each, "ephemeral-storage", bytes)),
      capacity.storageBytes,
    ],
  ];
  const short = amounts.find(([, wanted, used, whole]) => wanted > 0 && used + wanted > whole);
  if (short === undefined) return undefined;
  const [name, wanted, used, whole] = short;
  return {
    reason: `OutOf${name}`,
    message: `Node didn't have enough resource: ${name}, requested: ${wanted}, used: ${used}, capacity: ${whole}`,
  };
}

/**
 * What the pod needs at its hungriest: all containers together, or one init container beside the sidecars before it.
 */
function requested(pod: Pod, name: string, read: (quantity: string | undefined) => number): number {
  const of = (container: {
    resources?: { requests?: Readonly<Record<string, string>> | undefined } | undefined;
  }): number => read(container.resources?.requests?.[name]);
  let sidecars = 0;
  let peak = 0;
  for (const container of initContainers(pod)) {
    if (isSidecar(container)) sidecars += of(container);
    else peak = Math.max(peak, sidecars + of(container));
  }
  const steady = appContainers(pod).reduce((total, each) => total + of(each), sidecars);
  return Math.max(peak, steady);
}

function admitPorts({ pod, others }: AdmissionInput): WaitingReason | undefined {
  const taken = others.filter((each) => !isTerminal(each)).flatMap(hostPorts);
  const clash = hostPorts(pod).some((port) =>
    taken.some(
      (other) =>
        other.port === port.port &&
        other.protocol === port.protocol &&
        (other.ip === port.ip || other.ip === "0.0.0.0" || port.ip === "0.0.0.0"),
    ),
  );
  return clash
    ? {
        reason: "NodePorts",
        message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
      }
    : undefined;
}

function hostPorts(pod: Pod): readonly { readonly port: number; readonly protocol: string; readonly ip: string }[] {
  const hostNetwork = pod.spec?.hostNetwork === true;
  return appContainers(pod)
    .flatMap((container) => container.ports ?? [])
    .map((port) => ({
      port: port.hostPort ?? (hostNetwork ? port.containerPort : 0),
      protocol: port.protocol ?? "TCP",
      ip: port.hostIP === undefined || port.hostIP === "" ? "0.0.0.0" : port.hostIP,
    }))
    .filter((each) => each.port > 0);
}
